"""
verdict: none
stack:
  count_kmers("reads.fastq.gz", 21)
  read_block(handle, BLOCK)
  list(islice(stream, 4))
why: the file moves on in each call, so the same handle gives the next reads
"""
import gzip
from collections import Counter
from itertools import islice

BLOCK = 20000


def read_block(stream, n):
    sequences = []
    while len(sequences) < n:
        record = list(islice(stream, 4))
        if len(record) < 4:
            break
        sequences.append(record[1].rstrip())
    return sequences


def canonical(kmer, table=str.maketrans("ACGT", "TGCA")):
    return min(kmer, kmer.translate(table)[::-1])


def count_kmers(path, k):
    counts = Counter()
    with gzip.open(path, "rt") as handle:
        while True:
            block = read_block(handle, BLOCK)
            if not block:
                break
            for seq in block:
                counts.update(canonical(seq[i:i + k]) for i in range(len(seq) - k + 1))
    return counts


if __name__ == "__main__":
    counts = count_kmers("reads.fastq.gz", 21)
    histogram = Counter(counts.values())
    for depth in sorted(histogram)[:100]:
        print(depth, histogram[depth])
