"""Bayesian optimisation of a coupling reaction: which conditions to try next."""
import warnings

import numpy as np
from scipy.stats import norm, qmc
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

warnings.filterwarnings("ignore")

N_CONDITIONS = 3500
N_START = 20
N_ROUNDS = 36
NAMES = ("temperature", "time", "catalyst", "ligand", "base", "solvent")


def true_yield(x):
    peak_a = np.exp(-np.sum(((x - 0.35) / 0.25) ** 2, axis=1))
    peak_b = np.exp(-np.sum(((x - 0.7) / 0.18) ** 2, axis=1))
    ripple = 0.05 * np.sin(9.0 * x[:, 0]) * np.cos(7.0 * x[:, 3])
    return 60.0 * peak_a + 92.0 * peak_b + 20.0 * ripple + 15.0 * x[:, 2]


def run_experiment(x, rng):
    return true_yield(x) + rng.normal(0.0, 0.8, len(x))


def expected_improvement(mean, std, best):
    gap = mean - best - 0.05
    z = gap / std
    return gap * norm.cdf(z) + std * norm.pdf(z)


def main():
    rng = np.random.default_rng(42)
    conditions = qmc.Sobol(6, seed=7).random_base2(12)[:N_CONDITIONS]
    tried = list(rng.choice(N_CONDITIONS, N_START, replace=False))
    results = list(run_experiment(conditions[tried], rng))

    kernel = ConstantKernel(1.0, (1e-2, 1e2)) * Matern(
        length_scale=np.full(6, 0.5), length_scale_bounds=(5e-2, 5.0), nu=2.5
    ) + WhiteKernel(1e-2, (1e-5, 1.0))
    gp = GaussianProcessRegressor(
        kernel, normalize_y=True, n_restarts_optimizer=1, random_state=0
    )

    for number in range(N_ROUNDS):
        gp.fit(conditions[tried], np.array(results))
        mean, cov = gp.predict(conditions, return_cov=True)
        std = np.sqrt(np.maximum(np.diag(cov), 1e-10))
        score = expected_improvement(mean, std, max(results))
        score[tried] = -np.inf
        pick = int(np.argmax(score))
        tried.append(pick)
        results.append(float(run_experiment(conditions[[pick]], rng)[0]))
        if (number + 1) % 6 == 0:
            print(f"round {number + 1:3d}  best yield so far {max(results):6.2f} %", flush=True)

    best = tried[int(np.argmax(results))]
    settings = ", ".join(f"{n}={v:.2f}" for n, v in zip(NAMES, conditions[best]))
    print(f"best conditions: {settings}")
    print(f"best possible in the list: {true_yield(conditions).max():.2f} %")


if __name__ == "__main__":
    main()
