"""Blocks of linked markers along a chromosome (r2 between all markers of overlapping windows)."""
import numpy as np

N_PEOPLE = 720
N_MARKERS = 9_600
WINDOW, STEP = 900, 600
THRESHOLD = 0.5


def simulate_genotypes(rng):
    """Genotypes 0, 1, 2 as copies of ancestral haplotypes with recombination."""
    ancestors = rng.random((24, N_MARKERS)) < rng.beta(0.8, 1.6, N_MARKERS)
    genotypes = np.zeros((N_PEOPLE, N_MARKERS), dtype=np.int8)
    for person in range(N_PEOPLE):
        for _ in range(2):
            switches = np.cumsum(rng.random(N_MARKERS) < 0.004)
            source = rng.integers(0, 24, switches[-1] + 1)[switches]
            genotypes[person] += ancestors[source, np.arange(N_MARKERS)]
    return genotypes


def r_squared(window):
    """Squared correlation of all pairs of markers, from the sums of products."""
    counts = window.astype(np.int64)
    products = counts.T @ counts
    sums = counts.sum(axis=0)
    covariance = products / N_PEOPLE - np.outer(sums, sums) / N_PEOPLE ** 2
    variance = np.maximum(np.diag(covariance), 1e-9)
    return covariance ** 2 / np.outer(variance, variance)


def blocks_of(r2):
    """Grow a block while the new marker is linked with most of its members."""
    edges, start = [], 0
    for marker in range(1, len(r2)):
        linked = np.mean(r2[marker, start:marker] > THRESHOLD)
        if linked < 0.3:
            edges.append((start, marker))
            start = marker
    edges.append((start, len(r2)))
    return edges


def decay(r2, bins):
    """Mean r2 by the distance of the markers, for the plot."""
    return np.array([np.diagonal(r2, offset).mean() for offset in bins])


def main():
    rng = np.random.default_rng(29)
    genotypes = simulate_genotypes(rng)
    bins = np.arange(1, 400)
    curves, lengths = [], []
    for first in range(0, N_MARKERS - WINDOW + 1, STEP):
        r2 = r_squared(genotypes[:, first:first + WINDOW])
        lengths += [stop - start for start, stop in blocks_of(r2)]
        curves.append(decay(r2, bins))
    curve = np.mean(curves, axis=0)
    half = bins[np.argmax(curve < curve[0] / 2)]
    print("windows", len(curves), "blocks", len(lengths))
    print("longest block", max(lengths), "mean %.2f" % np.mean(lengths))
    print("r2 of neighbours %.3f, halved after %d markers" % (curve[0], half))


if __name__ == "__main__":
    main()
