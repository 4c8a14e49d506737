"""Exact Gaussian-process map of mercury in lake sediment, hyperparameters by likelihood."""
import warnings

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

warnings.filterwarnings("ignore")
CORES, MAP = 1600, 60


def sediment(rng):
    """Two inflows and a deep basin, sampled at random places from a boat."""
    place = rng.uniform(0, 1, (CORES, 2))
    level = (2.0 * np.exp(-((place - [0.2, 0.3]) ** 2).sum(1) / 0.02)
             + 1.2 * np.exp(-((place - [0.7, 0.8]) ** 2).sum(1) / 0.05)
             + 0.5 * np.sin(5 * place[:, 0]) * np.cos(4 * place[:, 1]))
    return place, level + rng.normal(0, 0.15, CORES)


def main():
    rng = np.random.default_rng(66)
    place, level = sediment(rng)
    test = rng.permutation(CORES)[:100]
    train = np.setdiff1d(np.arange(CORES), test)
    kernel = (ConstantKernel(1.0, (1e-2, 1e2)) * RBF([0.3, 0.3], (1e-2, 10.0))
              + WhiteKernel(0.1, (1e-4, 1.0)))
    model = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=0,
                                     random_state=0)
    model.fit(place[train], level[train])
    print("kernel:", model.kernel_)
    print(f"log marginal likelihood {model.log_marginal_likelihood_value_:.2f}")
    predicted, spread = model.predict(place[test], return_std=True)
    error = level[test] - predicted
    print(f"held-out rmse {np.sqrt(np.mean(error ** 2)):.4f}, "
          f"within two sigma {np.mean(np.abs(error) < 2 * spread):.3f}")
    axis = np.linspace(0, 1, MAP)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    surface = model.predict(grid)
    hottest = grid[np.argmax(surface)]
    print(f"hottest place {hottest.round(3).tolist()} level {surface.max():.3f}")


if __name__ == "__main__":
    main()
