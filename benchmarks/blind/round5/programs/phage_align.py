"""Best local alignment of two phage genomes.

Exact Smith-Waterman with a linear gap cost.  The table is far too large to
keep; only one row is held at a time, and gaps along the row are resolved
with a running maximum.
"""
import numpy as np

QUERY = 112_000
TARGET = 72_000
MATCH, MISMATCH, GAP = 5, -4, 6


def genomes(rng):
    """Two genomes that share some stretches with mutations."""
    query = rng.integers(0, 4, QUERY, dtype=np.int8)
    target = rng.integers(0, 4, TARGET, dtype=np.int8)
    for q, t, n in ((6_000, 31_000, 2_600), (22_500, 8_200, 4_100),
                    (40_100, 44_000, 1_800)):
        piece = query[q:q + n].copy()
        hit = rng.random(n) < 0.12
        piece[hit] = rng.integers(0, 4, int(hit.sum()), dtype=np.int8)
        target[t:t + n] = piece
    return query, target


def align(query, target):
    """Score and end point of the best local alignment, and row maxima."""
    width = len(target)
    ramp = GAP * np.arange(width + 1, dtype=np.int32)
    scores = np.full((4, width), MISMATCH, dtype=np.int32)
    for base in range(4):
        scores[base][target == base] = MATCH
    row = np.zeros(width + 1, dtype=np.int32)
    work = np.empty_like(row)
    diagonal = np.empty(width, dtype=np.int32)
    maxima = np.empty(len(query), dtype=np.int32)
    best = (0, 0, 0)
    for i, base in enumerate(query):
        np.add(row[:-1], scores[base], out=diagonal)
        np.subtract(row, GAP, out=work)
        np.maximum(work[1:], diagonal, out=work[1:])
        np.maximum(work, 0, out=work)
        work += ramp
        np.maximum.accumulate(work, out=row)
        row -= ramp
        top = int(row.max())
        maxima[i] = top
        if top > best[0]:
            best = (top, i, int(row.argmax()))
    return best, maxima


def main():
    query, target = genomes(np.random.default_rng(174))
    (score, q, t), maxima = align(query, target)
    peaks = np.flatnonzero((maxima[1:-1] > maxima[:-2]) & (maxima[1:-1] >= maxima[2:])
                           & (maxima[1:-1] > 3000))
    print(f"genomes: {len(query)} and {len(target)} bases")
    print(f"best local score {score}, ends at {q} and {t}")
    print(f"mean row maximum {maxima.mean():.2f}, strong peaks {len(peaks)}")


if __name__ == "__main__":
    main()
