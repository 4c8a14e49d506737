"""All energy levels and the thermal bond orders of an irregular graphene flake (tight binding)."""
import numpy as np
from scipy import linalg, spatial

ATOMS = 4700
HOPPING = -2.7
KT = 0.025


def flake(rng):
    """Sites of a honeycomb lattice inside a rough outline."""
    a = np.array([np.sqrt(3), 0.0])
    b = np.array([np.sqrt(3) / 2, 1.5])
    i, j = np.meshgrid(np.arange(-80, 81), np.arange(-80, 81))
    cell = i.reshape(-1, 1) * a + j.reshape(-1, 1) * b
    sites = np.vstack([cell, cell + [0.0, 1.0]])
    angle = np.arctan2(sites[:, 1], sites[:, 0])
    rough = 1.0 + sum(0.04 * rng.normal() * np.cos(k * angle + k) for k in range(2, 7))
    nearest = np.argsort(np.hypot(sites[:, 0], sites[:, 1]) / rough, kind="stable")
    return sites[nearest[:ATOMS]]


def hamiltonian(sites, rng):
    pairs = spatial.cKDTree(sites).query_pairs(1.1, output_type="ndarray")
    matrix = np.zeros((ATOMS, ATOMS), order="F")
    matrix[pairs[:, 0], pairs[:, 1]] = HOPPING
    matrix[pairs[:, 1], pairs[:, 0]] = HOPPING
    matrix[np.arange(ATOMS), np.arange(ATOMS)] = rng.normal(0, 0.2, ATOMS)
    return matrix, pairs


def main():
    rng = np.random.default_rng(66)
    sites = flake(rng)
    matrix, pairs = hamiltonian(sites, rng)
    print("atoms:", ATOMS, "bonds:", len(pairs), flush=True)

    levels, states = linalg.eigh(matrix, overwrite_a=True, check_finite=False, driver="evd")
    filling = 2.0 / (1.0 + np.exp(np.clip((levels - np.median(levels)) / KT, -60, 60)))
    weighted = states * filling
    order = np.einsum("ij,ij->i", weighted[pairs[:, 0]], states[pairs[:, 1]])
    charge = np.einsum("ij,ij->i", weighted, states)

    half = ATOMS // 2
    print("gap: %.5f eV" % (levels[half] - levels[half - 1]))
    print("lowest level: %.4f eV" % levels[0])
    print("mean bond order: %.4f, weakest %.4f" % (order.mean(), order.min()))
    print("charge spread: %.4f" % charge.std())


if __name__ == "__main__":
    main()
