"""Adjustment of a continental geodetic network with its full covariance.

For each epoch the observation equations are dense (common orbit and clock
errors join all stations); error ellipses and baselines need the inverse of the normals.
"""
import numpy as np
from scipy import linalg

STATIONS = 1300
UNKNOWNS = 3 * STATIONS
OBSERVATIONS = 9000
EPOCHS = 5


def observations(epoch):
    rng = np.random.default_rng(1990 + epoch)
    design = rng.standard_normal((OBSERVATIONS, UNKNOWNS))
    common = rng.standard_normal((OBSERVATIONS, 6))
    design += 0.3 * common @ rng.standard_normal((6, UNKNOWNS))
    truth = 0.01 * rng.standard_normal(UNKNOWNS)
    weights = rng.uniform(0.5, 2.0, OBSERVATIONS)
    values = design @ truth + 0.02 * rng.standard_normal(OBSERVATIONS) / np.sqrt(weights)
    return design, values, weights, truth


def adjust(design, values, weights):
    root = np.sqrt(weights)
    design *= root[:, None]
    values = values * root
    normals = design.T @ design
    normals[np.diag_indices_from(normals)] += 1e-6
    factor, lower = linalg.cho_factor(normals, lower=True, overwrite_a=True, check_finite=False)
    estimate = linalg.cho_solve((factor, lower), design.T @ values, check_finite=False)
    covariance, info = linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
    if info != 0:
        raise RuntimeError("normals cannot be inverted")
    residual = values - design @ estimate
    variance = float(residual @ residual) / (OBSERVATIONS - UNKNOWNS)
    return estimate, covariance, variance


def ellipses(covariance, variance):
    axes = np.empty((STATIONS, 2))
    for station in range(STATIONS):
        i = 3 * station
        block = covariance[i:i + 2, i:i + 2]
        block = np.array([[block[0, 0], block[1, 0]], [block[1, 0], block[1, 1]]])
        axes[station] = np.sqrt(variance * np.linalg.eigvalsh(block)[::-1])
    return axes


def worst_baseline(covariance, variance):
    heights = covariance[2::3, 2::3]
    own = np.diagonal(heights)
    spread = np.tril(own[:, None] + own[None, :] - 2.0 * heights, -1)
    return float(np.sqrt(variance * spread.max()))


def main():
    places = []
    for epoch in range(EPOCHS):
        design, values, weights, truth = observations(epoch)
        estimate, covariance, variance = adjust(design, values, weights)
        axes = ellipses(covariance, variance)
        baseline = worst_baseline(covariance, variance)
        error = float(np.sqrt(np.mean((estimate - truth) ** 2)))
        places.append(estimate)
        print(f"epoch {epoch}: sigma {np.sqrt(variance):.5f} m, error {1000 * error:.3f} mm, "
              f"largest axis {1000 * axes.max():.3f} mm, height difference {1000 * baseline:.3f} mm")
    moves = np.diff(np.array(places), axis=0)
    print(f"mean step between epochs {1000 * np.abs(moves).mean():.3f} mm")


if __name__ == "__main__":
    main()
