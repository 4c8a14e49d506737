"""Which petroglyph motifs share panels more often than chance? A permutation test."""
import numpy as np

PANELS = 4000
MOTIFS = 240
PERMUTATIONS = 24


def make_panels(rng):
    """Presence of motifs on rock panels; motifs come in loose families."""
    families = rng.integers(0, 12, MOTIFS)
    mood = rng.gamma(0.6, 1.0, (PANELS, 12))
    chance = np.clip(0.03 + 0.10 * mood[:, families] * rng.random(MOTIFS), 0, 0.9)
    return (rng.random((PANELS, MOTIFS)) < chance).astype(np.int64), families


def cooccurrence(presence):
    """Number of panels that carry both motifs, for all pairs of motifs."""
    return presence.T @ presence


def shuffle_within_sites(rng, presence, sites):
    """Permute each motif over the panels of the same site."""
    shuffled = np.empty_like(presence)
    for site in np.unique(sites):
        rows = np.flatnonzero(sites == site)
        shuffled[rows] = rng.permuted(presence[rows], axis=0)
    return shuffled


def main():
    rng = np.random.default_rng(77)
    presence, families = make_panels(rng)
    sites = np.sort(rng.integers(0, 25, PANELS))
    observed = cooccurrence(presence)
    total = np.zeros(observed.shape)
    squares = np.zeros(observed.shape)
    higher = np.zeros(observed.shape, np.int64)
    for _ in range(PERMUTATIONS):
        by_chance = cooccurrence(shuffle_within_sites(rng, presence, sites))
        total += by_chance
        squares += by_chance.astype(float) ** 2
        higher += by_chance >= observed
    mean = total / PERMUTATIONS
    spread = np.sqrt(np.maximum(squares / PERMUTATIONS - mean ** 2, 1.0))
    z = (observed - mean) / spread
    upper = np.triu_indices(MOTIFS, 1)
    same = (families[:, None] == families[None, :])[upper]
    print("panels %d, motifs %d, marks %d" % (PANELS, MOTIFS, presence.sum()))
    print("pairs never reached by chance:", int((higher[upper] == 0).sum()))
    print("mean z within families %.2f, between %.2f" % (z[upper][same].mean(), z[upper][~same].mean()))
    order = np.argsort(-z[upper], kind="stable")[:3]
    for k in order:
        i, j = upper[0][k], upper[1][k]
        print("  motif %3d with %3d: seen %d, expected %.1f" % (i, j, observed[i, j], mean[i, j]))


if __name__ == "__main__":
    main()
