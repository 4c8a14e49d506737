"""
verdict: set
stack:
  cluster(read_fasta("contigs.fa"), k=12)
  kmer_profile(sequence)
  counts.get(word, 0)
call: kmer_profile(sequence)
loop: while moved > 0
why: each round of k-means counts the k-mers of the same contigs again, only the centres change
"""
from itertools import product

import numpy as np

KMERS = {"".join(p): i for i, p in enumerate(product("ACGT", repeat=4))}


def read_fasta(path):
    records, name = {}, None
    with open(path) as handle:
        for line in handle:
            if line.startswith(">"):
                name = line[1:].split()[0]
                records[name] = []
            else:
                records[name].append(line.strip().upper())
    return {key: "".join(parts) for key, parts in records.items()}


def kmer_profile(dna):
    counts = {}
    for start in range(len(dna) - 3):
        word = dna[start : start + 4]
        counts[word] = counts.get(word, 0) + 1
    vector = np.zeros(len(KMERS))
    for word, n in counts.items():
        if word in KMERS:
            vector[KMERS[word]] = n
    return vector / max(vector.sum(), 1)


def cluster(records, k, seed=0):
    rng = np.random.default_rng(seed)
    centres = rng.dirichlet(np.ones(len(KMERS)), size=k)
    labels = dict.fromkeys(records, -1)
    moved = len(records)
    while moved > 0:
        moved = 0
        sums = np.zeros_like(centres)
        sizes = np.zeros(k)
        for name, sequence in records.items():
            profile = kmer_profile(sequence)
            best = int(((centres - profile) ** 2).sum(axis=1).argmin())
            moved += best != labels[name]
            labels[name] = best
            sums[best] += profile
            sizes[best] += 1
        centres = sums / np.maximum(sizes, 1)[:, None]
    return labels


if __name__ == "__main__":
    print(cluster(read_fasta("contigs.fa"), k=12))
