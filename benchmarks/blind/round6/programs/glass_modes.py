"""Vibrational modes of a model glass: full spectrum and participation of each mode."""
import numpy as np
from scipy.spatial import cKDTree

PARTICLES = 850
DENSITY = 1.2
CUTOFF = 1.45
SAMPLES = 4


def configuration(rng):
    side = (PARTICLES / DENSITY) ** (1 / 3)
    grid = int(np.ceil(PARTICLES ** (1 / 3)))
    lattice = np.stack(np.meshgrid(*[np.arange(grid)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    points = (lattice[:PARTICLES] + 0.5) * side / grid
    points = points + 0.12 * rng.standard_normal(points.shape)
    return points % side, side


def hessian(points, side, rng):
    pairs = cKDTree(points, boxsize=side).query_pairs(CUTOFF, output_type="ndarray")
    bond = points[pairs[:, 0]] - points[pairs[:, 1]]
    bond -= side * np.round(bond / side)
    unit = bond / np.linalg.norm(bond, axis=1, keepdims=True)
    stiffness = 1.0 + 0.5 * rng.random(len(pairs))
    blocks = stiffness[:, None, None] * unit[:, :, None] * unit[:, None, :]
    matrix = np.zeros((3 * PARTICLES, 3 * PARTICLES))
    axis = np.arange(3)
    i, j = pairs.T
    for a, b, sign in ((i, j, -1), (j, i, -1), (i, i, 1), (j, j, 1)):
        rows = 3 * a[:, None, None] + axis[:, None]
        cols = 3 * b[:, None, None] + axis[None, :]
        np.add.at(matrix, (rows, cols), sign * blocks)
    return matrix


def modes(matrix):
    values, vectors = np.linalg.eigh(matrix)
    frequency = np.sqrt(np.clip(values, 0, None))
    weight = (vectors.reshape(PARTICLES, 3, -1) ** 2).sum(axis=1)
    participation = 1.0 / (PARTICLES * (weight ** 2).sum(axis=0))
    return frequency, participation


def main():
    rng = np.random.default_rng(55)
    density = np.zeros(30)
    for sample in range(SAMPLES):
        points, side = configuration(rng)
        frequency, participation = modes(hessian(points, side, rng))
        density += np.histogram(frequency, bins=30, range=(0, 4))[0]
        soft = participation[frequency > 1e-4][:40].mean()
        print("sample %d  highest frequency %.4f  participation %.4f  soft %.4f"
              % (sample, frequency[-1], participation.mean(), soft))
    print("modes counted", int(density.sum()))
    print("peak of the density of states at %.3f" % ((np.argmax(density) + 0.5) * 4 / 30))


if __name__ == "__main__":
    main()
