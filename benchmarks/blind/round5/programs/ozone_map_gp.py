"""Interpolate ozone readings of a region with an exact Gaussian process.

The length scales and the noise are found by maximising the likelihood; the map carries an
honest standard deviation, which is why no approximation is used.
"""
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

READINGS, GRID = 2100, 36


def field(place):
    x, y = place[:, 0], place[:, 1]
    plume = 30 * np.exp(-((x - 6) ** 2 / 4 + (y - 3) ** 2 / 1.5))
    return 60 + 8 * np.sin(0.8 * x) + 5 * np.cos(1.1 * y) + plume


def readings():
    rng = np.random.default_rng(12)
    town = rng.normal([6, 4], [1.5, 1.2], (READINGS // 2, 2))
    rural = rng.uniform(0, 10, (READINGS - READINGS // 2, 2))
    place = np.clip(np.concatenate([town, rural]), 0, 10)
    return place, field(place) + rng.normal(0, 2.0, READINGS)


def grid():
    line = np.linspace(0, 10, GRID)
    a, b = np.meshgrid(line, line)
    return np.stack([a.ravel(), b.ravel()], 1)


def coverage(truth, mean, deviation):
    return np.mean(np.abs(truth - mean) < 1.96 * deviation)


def main():
    place, ozone = readings()
    average = ozone.mean()
    kernel = (ConstantKernel(100.0, (1.0, 1e5)) * RBF([2.0, 2.0], (0.1, 30.0))
              + WhiteKernel(5.0, (0.1, 50.0)))
    process = GaussianProcessRegressor(kernel, n_restarts_optimizer=0)
    process.fit(place, ozone - average)
    print("kernel found:", process.kernel_)
    print(f"log likelihood: {process.log_marginal_likelihood_value_:.1f}")

    points = grid()
    mean, deviation = process.predict(points, return_std=True)
    mean = mean + average
    truth = field(points)
    print(f"map error {np.sqrt(np.mean((mean - truth) ** 2)):.2f}, "
          f"mean deviation {deviation.mean():.2f}, inside the band {coverage(truth, mean, deviation):.2f}")
    worst = points[np.argmax(mean)]
    print(f"highest ozone {mean.max():.0f} at ({worst[0]:.1f}, {worst[1]:.1f})")


if __name__ == "__main__":
    main()
