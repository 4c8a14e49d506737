"""
verdict: same
stack:
  annotate(sys.argv[1], sys.argv[2])
  gene_at(chrom, int(pos), annotation)
  load_genes(gtf_path)
  pd.read_csv(gtf, delimiter=TAB, comment="#", header=None, usecols=[0, 2, 3, 4, 8])
call: load_genes(gtf_path)
loop: for line in vcf
why: the annotation table is parsed again from the same path for each variant
"""
import gzip
import sys

import pandas as pd

TAB = "\t"


def load_genes(gtf):
    table = pd.read_csv(gtf, delimiter=TAB, comment="#", header=None, usecols=[0, 2, 3, 4, 8])
    table.columns = ["chrom", "feature", "start", "end", "attributes"]
    table = table[table["feature"] == "gene"]
    table["gene"] = table["attributes"].str.extract(r'gene_name "([^"]+)"')
    return table


def gene_at(chromosome, position, gtf_path):
    genes = load_genes(gtf_path)
    hit = genes[
        (genes["chrom"] == chromosome)
        & (genes["start"] <= position)
        & (genes["end"] >= position)
    ]
    return ",".join(hit["gene"].dropna())


def annotate(vcf_path, annotation):
    with gzip.open(vcf_path, "rt") as vcf:
        for line in vcf:
            if line.startswith("#"):
                continue
            chrom, pos, ident, ref, alt = line.split("\t")[:5]
            symbol = gene_at(chrom, int(pos), annotation)
            print(chrom, pos, ident, ref, alt, symbol or ".", sep="\t")


if __name__ == "__main__":
    annotate(sys.argv[1], sys.argv[2])
