"""
verdict: same
stack:
  main("wells.npz")
  interpolate(gram, values[:, col], cross)
  cho_factor(kernel + NUGGET * np.eye(len(kernel)))
call: cho_factor(kernel + NUGGET * np.eye(len(kernel)))
loop: for col in range(values.shape[1])
why: the same covariance matrix is factorised again for each measured element, only the right-hand side differs
"""
import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

NUGGET = 1e-4


def covariance(a, b, length=250.0):
    return np.exp(-cdist(a, b) / length)


def interpolate(kernel, y, k_star):
    mean = y.mean()
    factor = cho_factor(kernel + NUGGET * np.eye(len(kernel)))
    alpha = cho_solve(factor, y - mean)
    return mean + k_star @ alpha


def main(archive):
    data = np.load(archive)
    wells, grid, values = data["wells"], data["grid"], data["values"]
    gram = covariance(wells, wells)
    cross = covariance(grid, wells)
    maps = np.empty((len(grid), values.shape[1]))
    for col in range(values.shape[1]):
        maps[:, col] = interpolate(gram, values[:, col], cross)
    np.save("maps.npy", maps)


if __name__ == "__main__":
    main("wells.npz")
