"""Forward simulation of mutations in a small population of seals, individual by individual."""
import random
import tracemalloc
from bisect import bisect_left, insort
from collections import Counter

POPULATION = 900
GENERATIONS = 520
GENOME = 30_000_000
BOTTLENECK = range(180, 230)
MUTATION, CROSSOVER = 0.35, 0.6


def gamete(rng, mother):
    """A recombined and mutated copy of the two haplotypes of a parent."""
    first, second = mother
    if rng.random() < 0.5:
        first, second = second, first
    cuts = [rng.randrange(GENOME)]
    while rng.random() < CROSSOVER:
        cuts.append(rng.randrange(GENOME))
    cuts.sort()
    child = []
    position = 0
    for cut in cuts:
        child += first[bisect_left(first, position):bisect_left(first, cut)]
        first, second = second, first
        position = cut
    child += first[bisect_left(first, position):]
    while rng.random() < MUTATION:
        insort(child, rng.randrange(GENOME))
    return child


def size_in(generation):
    return POPULATION // 7 if generation in BOTTLENECK else POPULATION


def spectrum(herd):
    """Number of carriers of each mutation; mutations of all are taken out."""
    carriers = Counter()
    for pair in herd:
        carriers.update(pair[0])
        carriers.update(pair[1])
    everyone = 2 * len(herd)
    fixed = {site for site, count in carriers.items() if count == everyone}
    if fixed:
        herd[:] = [tuple([s for s in hap if s not in fixed] for hap in pair) for pair in herd]
    return carriers, len(fixed)


def heterozygosity(carriers, everyone):
    total = sum(2.0 * (c / everyone) * (1.0 - c / everyone) for c in carriers.values())
    return total / GENOME


def main():
    tracemalloc.start(25)
    rng = random.Random(2718)
    herd = [([], []) for _ in range(POPULATION)]
    fixed = 0
    history = []
    for generation in range(GENERATIONS):
        parents = len(herd)
        breeding = [herd[rng.randrange(parents)] for _ in range(max(parents // 2, 10))]
        herd = [
            (gamete(rng, rng.choice(breeding)), gamete(rng, rng.choice(breeding)))
            for _ in range(size_in(generation))
        ]
        if generation % 20 == 19:
            carriers, newly = spectrum(herd)
            fixed += newly
            history.append(heterozygosity(carriers, 2 * len(herd)))
    peak = tracemalloc.get_traced_memory()[1]
    print("memory at most %.0f MB" % (round(peak / 5e7) * 50))
    print("segregating", len(carriers), "fixed", fixed)
    print("heterozygosity before %.3e, in the bottleneck %.3e, at the end %.3e"
          % (history[8], min(history[9:12]), history[-1]))


if __name__ == "__main__":
    main()
