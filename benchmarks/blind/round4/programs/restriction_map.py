#!/usr/bin/env python
"""In-silico digestion: fragment statistics of many enzymes over many contigs."""
import random
import re
from collections import defaultdict

IUPAC = {
    "A": "A", "C": "C", "G": "G", "T": "T",
    "R": "[AG]", "Y": "[CT]", "S": "[CG]", "W": "[AT]",
    "K": "[GT]", "M": "[AC]", "N": "[ACGT]",
}
CONTIGS = 48
LENGTH = 15_000
ENZYMES = 640


def recognition_sites(rnd):
    letters = "ACGT" * 5 + "RYSWKMN"
    sites = []
    seen = set()
    while len(sites) < ENZYMES:
        site = "".join(rnd.choice(letters) for _ in range(rnd.randint(5, 8)))
        if site in seen or site.count("N") > 1:
            continue
        seen.add(site)
        sites.append(site)
    return sites


def to_pattern(site):
    return "(?=" + "".join(IUPAC[c] for c in site) + ")"


def contig(rnd, gc):
    weights = [(1 - gc) / 2, gc / 2, gc / 2, (1 - gc) / 2]
    return "".join(rnd.choices("ACGT", weights, k=LENGTH))


def fragments(cuts, length):
    edges = [0] + cuts + [length]
    return [b - a for a, b in zip(edges, edges[1:])]


def main():
    rnd = random.Random(4711)
    enzymes = {f"enz{i:03d}": to_pattern(s) for i, s in enumerate(recognition_sites(rnd))}
    contigs = [contig(rnd, rnd.uniform(0.35, 0.65)) for _ in range(CONTIGS)]

    n_cuts = defaultdict(int)
    longest = defaultdict(int)
    small = defaultdict(int)
    for seq in contigs:
        for name, pattern in enzymes.items():
            cuts = [m.start() for m in re.finditer(pattern, seq)]
            pieces = fragments(cuts, len(seq))
            n_cuts[name] += len(cuts)
            longest[name] = max(longest[name], max(pieces))
            small[name] += sum(1 for p in pieces if p < 200)

    rare = sorted(n_cuts, key=lambda n: (n_cuts[n], n))[:5]
    usual = sorted(n_cuts, key=lambda n: (-n_cuts[n], n))[:5]
    print("total cuts", sum(n_cuts.values()))
    print("small fragments", sum(small.values()))
    print("rare cutters", ", ".join(f"{n}:{n_cuts[n]}" for n in rare))
    print("frequent cutters", ", ".join(f"{n}:{n_cuts[n]}" for n in usual))
    print("longest fragment", max(longest.values()))


if __name__ == "__main__":
    main()
