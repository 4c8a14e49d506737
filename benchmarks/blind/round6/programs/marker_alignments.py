"""Pairwise global alignment of marker gene fragments and a UPGMA-like ordering of the samples."""
import itertools
import random
from concurrent.futures import ThreadPoolExecutor

SAMPLES = 46
LENGTH = 320
WORKERS = 2
GAP = 2


def fragments():
    rnd = random.Random(20)
    ancestors = ["".join(rnd.choice("ACGT") for _ in range(LENGTH)) for _ in range(4)]
    out = []
    for k in range(SAMPLES):
        bases = list(ancestors[k % 4])
        for _ in range(rnd.randrange(10, 60)):
            spot = rnd.randrange(len(bases))
            event = rnd.random()
            if event < 0.7:
                bases[spot] = rnd.choice("ACGT")
            elif event < 0.85:
                del bases[spot]
            else:
                bases.insert(spot, rnd.choice("ACGT"))
        out.append("".join(bases))
    return out


def align(pair):
    first, second = pair
    previous = [GAP * j for j in range(len(second) + 1)]
    for i, base in enumerate(first, 1):
        diagonal, left = previous[0], GAP * i
        current = [left]
        for j, other in enumerate(second, 1):
            above = previous[j]
            cost = diagonal if base == other else diagonal + 3
            if above + GAP < cost:
                cost = above + GAP
            if left + GAP < cost:
                cost = left + GAP
            current.append(cost)
            diagonal, left = above, cost
        previous = current
    return previous[-1] / max(len(first), len(second))


def cluster(distance):
    groups = {k: [k] for k in range(SAMPLES)}
    merges = []
    while len(groups) > 4:
        a, b = min(itertools.combinations(groups, 2),
                   key=lambda ab: sum(distance[min(i, j), max(i, j)] for i in groups[ab[0]] for j in groups[ab[1]])
                   / (len(groups[ab[0]]) * len(groups[ab[1]])))
        groups[a] += groups.pop(b)
        merges.append((a, b))
    return sorted(groups.values(), key=len), merges


def main():
    seqs = fragments()
    keys = list(itertools.combinations(range(SAMPLES), 2))
    with ThreadPoolExecutor(max_workers=WORKERS) as pool:
        scores = list(pool.map(align, [(seqs[i], seqs[j]) for i, j in keys]))
    distance = dict(zip(keys, scores))
    groups, merges = cluster(distance)
    print("alignments", len(scores))
    print("mean distance %.5f" % (sum(scores) / len(scores)))
    print("clades", [len(g) for g in groups], "last merge", merges[-1])


if __name__ == "__main__":
    main()
