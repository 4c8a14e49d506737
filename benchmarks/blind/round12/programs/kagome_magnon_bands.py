"""Spin waves of a disordered kagome ferromagnet: full spectra of large dense matrices."""
import numpy as np
from scipy.linalg import eigh

CELLS = 30
SAMPLES = 3


def bonds():
    def site(i, j, s):
        return 3 * ((i % CELLS) * CELLS + j % CELLS) + s
    pairs = []
    for i in range(CELLS):
        for j in range(CELLS):
            a, b, c = site(i, j, 0), site(i, j, 1), site(i, j, 2)
            pairs += [(a, b), (b, c), (a, c)]
            pairs += [(b, site(i, j + 1, 0)), (c, site(i + 1, j, 0)), (c, site(i + 1, j - 1, 1))]
    return np.array(pairs)


def hamiltonian(pairs, seed):
    rng = np.random.default_rng(seed)
    n = 3 * CELLS * CELLS
    exchange = 1.0 + 0.15 * rng.standard_normal(len(pairs))
    matrix = np.zeros((n, n))
    np.add.at(matrix, (pairs[:, 0], pairs[:, 0]), exchange)
    np.add.at(matrix, (pairs[:, 1], pairs[:, 1]), exchange)
    np.add.at(matrix, (pairs[:, 0], pairs[:, 1]), -exchange)
    np.add.at(matrix, (pairs[:, 1], pairs[:, 0]), -exchange)
    matrix[np.diag_indices(n)] += 0.02 * rng.random(n)
    return matrix


def participation(vectors):
    return 1.0 / (vectors ** 4).sum(axis=0) / len(vectors)


def main():
    pairs = bonds()
    edges = np.linspace(0.0, 8.0, 17)
    density = np.zeros(16)
    spread = np.zeros(16)
    for sample in range(SAMPLES):
        matrix = hamiltonian(pairs, 50 + sample)
        energy, vectors = eigh(matrix, overwrite_a=True, check_finite=False, driver="evd")
        share = participation(vectors)
        where = np.clip(np.digitize(energy, edges) - 1, 0, 15)
        density += np.bincount(where, minlength=16)
        spread += np.bincount(where, share, minlength=16)
        print(f"sample {sample}: lowest {energy[0]:.5f}, highest {energy[-1]:.5f}", flush=True)
    mean = spread / np.maximum(density, 1)
    print("states by energy", density.astype(int).tolist())
    print("participation   ", np.round(mean, 3).tolist())


if __name__ == "__main__":
    main()
