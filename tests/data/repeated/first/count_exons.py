"""
verdict: same
stack:
  main(sys.argv[1:])
  count_sample(bam, annotation=GTF)
  exon_index(annotation)
  ATTRIBUTE.search(fields[8])
call: exon_index(annotation)
loop: for bam in bams
why: the same annotation file is parsed again for each sample
"""
import gzip
import re
import sys
from bisect import bisect_right
from collections import Counter, defaultdict

import pysam

GTF = "gencode.v44.annotation.gtf.gz"
ATTRIBUTE = re.compile(r'gene_id "([^"]+)"')


def exon_index(gtf):
    exons = defaultdict(list)
    with gzip.open(gtf, "rt") as lines:
        for line in lines:
            if line.startswith("#"):
                continue
            fields = line.split("\t")
            if fields[2] != "exon":
                continue
            gene = ATTRIBUTE.search(fields[8]).group(1)
            exons[fields[0]].append((int(fields[3]) - 1, int(fields[4]), gene))
    return {chrom: sorted(found) for chrom, found in exons.items()}


def count_sample(path, annotation=None):
    exons = exon_index(annotation)
    starts = {c: [e[0] for e in found] for c, found in exons.items()}
    counts = Counter()
    with pysam.AlignmentFile(path) as reads:
        for read in reads:
            if read.is_unmapped or read.mapping_quality < 20:
                continue
            k = bisect_right(starts.get(read.reference_name, []), read.reference_start) - 1
            if k >= 0 and exons[read.reference_name][k][1] > read.reference_start:
                counts[exons[read.reference_name][k][2]] += 1
    return counts


def main(bams):
    for bam in bams:
        counts = count_sample(bam, annotation=GTF)
        with open(bam + ".counts", "w") as out:
            for gene, n in sorted(counts.items()):
                out.write(f"{gene}\t{n}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
