"""All modes of a room with coupled absorbing walls, from a dense symmetric model."""
import numpy as np
from scipy import linalg

NX, NY, NZ = 20, 15, 12
SOUND = 343.0
SPACING = 0.28


def grid():
    axes = np.meshgrid(np.arange(NX), np.arange(NY), np.arange(NZ), indexing="ij")
    return SPACING * np.stack([a.ravel() for a in axes], axis=1)


def stiffness(xyz):
    n = len(xyz)
    matrix = np.zeros((n, n))
    index = np.arange(n).reshape(NX, NY, NZ)
    for axis in range(3):
        here = np.moveaxis(index, axis, 0)[:-1].ravel()
        there = np.moveaxis(index, axis, 0)[1:].ravel()
        matrix[here, here] += 1.0
        matrix[there, there] += 1.0
        matrix[here, there] -= 1.0
        matrix[there, here] -= 1.0
    return matrix * (SOUND / SPACING) ** 2


def wall_coupling(xyz):
    limits = xyz.max(axis=0)
    depth = np.minimum(xyz, limits - xyz).min(axis=1)
    weight = np.exp(-depth / 0.2)
    squares = (xyz * xyz).sum(axis=1)
    gap = np.sqrt(np.maximum(squares[:, None] + squares[None, :] - 2 * xyz @ xyz.T, 0.0))
    return 900.0 * weight[:, None] * weight[None, :] / (1.0 + gap)


def response(frequencies, shapes, source, listener):
    band = np.linspace(20.0, 300.0, 1200)
    product = shapes[source] * shapes[listener]
    gap = frequencies[None, :] ** 2 - band[:, None] ** 2 + 4j * band[:, None]
    return band, np.abs((product / gap).sum(axis=1))


def main():
    xyz = grid()
    model = stiffness(xyz) + wall_coupling(xyz)
    squares, shapes = linalg.eigh(model, driver="evd", overwrite_a=True, check_finite=False)
    frequencies = np.sqrt(np.maximum(squares, 0.0)) / (2 * np.pi)
    spread = (shapes ** 4).sum(axis=0)
    band, level = response(frequencies, shapes, 5, len(xyz) - 9)
    print(f"{len(xyz)} points, {np.count_nonzero(frequencies < 300.0)} modes below 300 Hz")
    print(f"lowest {frequencies[1]:.3f} Hz, highest {frequencies[-1]:.2f} Hz")
    print(f"most local mode {frequencies[spread.argmax()]:.2f} Hz,"
          f" loudest at {band[level.argmax()]:.1f} Hz")


if __name__ == "__main__":
    main()
