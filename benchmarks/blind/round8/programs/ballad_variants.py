"""Families of the variants of a ballad by compression distance.

The normalised compression distance is computed for all pairs of variants;
the pairs go to two processes in blocks of similar size.
"""
import itertools
import lzma
import multiprocessing as mp
import random

import numpy as np
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

VARIANTS = 42
FAMILIES = 6
WORDS = 9000
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 18}]

texts = []
alone = []


def original(rnd, vocabulary):
    return [rnd.choice(vocabulary) for _ in range(WORDS)]


def retold(rnd, words, vocabulary, change):
    out = []
    for word in words:
        u = rnd.random()
        if u < change:
            out.append(rnd.choice(vocabulary))
        elif u > change * 0.3 + 0.02 or u < 0.5:
            out.append(word)
    return out


def make_texts():
    rnd = random.Random(1765)
    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary = ["".join(rnd.choice(letters) for _ in range(rnd.randint(2, 9))) for _ in range(3000)]
    family_texts = [original(rnd, vocabulary) for _ in range(FAMILIES)]
    out = []
    for number in range(VARIANTS):
        words = retold(rnd, family_texts[number % FAMILIES], vocabulary, rnd.uniform(0.05, 0.3))
        out.append(" ".join(words).encode())
    return out


def size(data):
    return len(lzma.compress(data, format=lzma.FORMAT_RAW, filters=FILTERS))


def pair_distance(pair):
    i, j = pair
    low, high = sorted((alone[i], alone[j]))
    both = size(texts[i] + b"\n" + texts[j])
    return i, j, (both - low) / high


def main():
    texts.extend(make_texts())
    alone.extend(size(text) for text in texts)
    pairs = list(itertools.combinations(range(VARIANTS), 2))
    table = np.zeros((VARIANTS, VARIANTS))
    with mp.get_context("fork").Pool(2) as pool:
        for i, j, value in pool.imap_unordered(pair_distance, pairs, chunksize=6):
            table[i, j] = table[j, i] = value
    tree = hierarchy.linkage(squareform(table, checks=False), method="average")
    labels = hierarchy.fcluster(tree, FAMILIES, criterion="maxclust")
    same = sum(labels[i] == labels[j] for i, j in pairs if i % FAMILIES == j % FAMILIES)
    print(f"{len(pairs)} pairs, mean distance {table[np.triu_indices(VARIANTS, 1)].mean():.4f}")
    print(f"{len(set(labels))} families, {same} pairs of the same family together")


if __name__ == "__main__":
    main()
