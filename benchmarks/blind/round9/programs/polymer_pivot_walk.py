"""Size of a self-avoiding polymer in three dimensions by the pivot algorithm."""
import itertools

import numpy as np

LENGTH = 1600
STEPS = 240000
WARM = 20000


def lattice_symmetries():
    """The 47 rotations and reflections of the cubic lattice besides the identity."""
    found = []
    for order in itertools.permutations(range(3)):
        for signs in itertools.product((1, -1), repeat=3):
            if (order, signs) != ((0, 1, 2), (1, 1, 1)):
                found.append((list(order), np.array(signs)[:, None]))
    return found


def crossing(chain):
    """True when two monomers share a site."""
    code = chain[0] * 16777216 + chain[1] * 4096 + chain[2]
    code.sort()
    return bool((code[1:] == code[:-1]).any())


def main():
    rng = np.random.default_rng(61)
    moves = lattice_symmetries()
    chain = np.zeros((3, LENGTH), dtype=np.int64)
    chain[0] = np.arange(LENGTH)
    pivots = rng.integers(1, LENGTH - 1, STEPS)
    kinds = rng.integers(0, len(moves), STEPS)
    accepted = 0
    ends, gyration = [], []
    for step in range(STEPS):
        pivot = pivots[step]
        order, signs = moves[kinds[step]]
        tail = chain[:, pivot + 1:]
        centre = chain[:, pivot:pivot + 1]
        trial = chain.copy()
        trial[:, pivot + 1:] = centre + signs * (tail - centre)[order]
        if not crossing(trial):
            chain = trial
            accepted += 1
        if step >= WARM and step % 50 == 0:
            span = chain[:, -1] - chain[:, 0]
            ends.append(float(span @ span))
            gyration.append(float(chain.var(axis=1).sum()))
        if (step + 1) % 60000 == 0:
            print("step %d accepted %.4f" % (step + 1, accepted / (step + 1)), flush=True)
    print("end-to-end squared: %.1f" % np.mean(ends))
    print("gyration squared: %.1f" % np.mean(gyration))
    print("ratio: %.3f" % (np.mean(ends) / np.mean(gyration)))


if __name__ == "__main__":
    main()
