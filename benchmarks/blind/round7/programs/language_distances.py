"""Family tree of invented languages from compression distances between their texts."""
import lzma
import random
from itertools import combinations
from multiprocessing import Pool

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

FAMILIES, PER_FAMILY = 6, 6
WORDS = 11_000
TEXTS = []


def invent_lexicon(rng):
    return ["".join(rng.choice("bcdfghklmnprstvwz") + rng.choice("aeiou") for _ in range(rng.randint(1, 4)))
            for _ in range(1_800)]


def daughter(rng, lexicon):
    """Sound changes and new words."""
    table = {rng.choice("bdgkpt"): rng.choice("fhsvwz") for _ in range(2)}
    vowels = {rng.choice("aeiou"): rng.choice("aeiou") for _ in range(2)}
    changed = []
    for word in lexicon:
        if rng.random() < 0.15:
            word = "".join(rng.choice("bdgklmnprst") + rng.choice("aeiou") for _ in range(2))
        changed.append("".join(vowels.get(table.get(c, c), table.get(c, c)) for c in word))
    return changed


def write_text(rng, lexicon):
    ranks = [int(len(lexicon) * rng.random() ** 3) for _ in range(WORDS)]
    return " ".join(lexicon[r] for r in ranks).encode()


def set_texts(texts):
    TEXTS[:] = texts


def size(data):
    return len(lzma.compress(data, format=lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA2, "preset": 6}]))


def single(i):
    return size(TEXTS[i])


def joint(pair):
    return size(TEXTS[pair[0]] + TEXTS[pair[1]])


def main():
    rng = random.Random(1786)
    texts, family = [], []
    for number in range(FAMILIES):
        proto = invent_lexicon(rng)
        for _ in range(PER_FAMILY):
            texts.append(write_text(rng, daughter(rng, proto)))
            family.append(number)

    pairs = list(combinations(range(len(texts)), 2))
    with Pool(2, initializer=set_texts, initargs=(texts,)) as pool:
        alone = pool.map(single, range(len(texts)), chunksize=3)
        together = pool.map(joint, pairs, chunksize=6)

    distance = np.zeros((len(texts), len(texts)))
    for (i, j), both in zip(pairs, together):
        distance[i, j] = distance[j, i] = (both - min(alone[i], alone[j])) / max(alone[i], alone[j])
    tree = linkage(squareform(distance), method="average")
    cut = fcluster(tree, FAMILIES, criterion="maxclust")
    pure = sum(len(set(cut[i] for i in range(len(texts)) if family[i] == f)) == 1 for f in range(FAMILIES))
    print("languages", len(texts), "pairs", len(pairs))
    print("distance %.4f to %.4f" % (distance[distance > 0].min(), distance.max()))
    print("families found", pure, "of", FAMILIES)


if __name__ == "__main__":
    main()
