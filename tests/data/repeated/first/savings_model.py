"""
verdict: same
stack:
  solve(Economy())
  bellman(value, eco)
  income_process(e.rho, e.sigma, e.n_income)
  norm.cdf((mid[None, :] - rho * z[:, None]) / sigma)
call: income_process(e.rho, e.sigma, e.n_income)
loop: while gap > eco.tol and iteration < 5000
why: the income chain depends on constants of the economy only and is discretised again in each Bellman step
"""
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm


@dataclass(frozen=True)
class Economy:
    beta: float = 0.96
    gamma: float = 2.0
    rate: float = 0.03
    rho: float = 0.95
    sigma: float = 0.1
    n_income: int = 401
    n_assets: int = 200
    tol: float = 1e-6


def income_process(rho, sigma, n):
    spread = 3 * sigma / np.sqrt(1 - rho**2)
    z = np.linspace(-spread, spread, n)
    mid = (z[1:] + z[:-1]) / 2
    cdf = norm.cdf((mid[None, :] - rho * z[:, None]) / sigma)
    full = np.hstack([np.zeros((n, 1)), cdf, np.ones((n, 1))])
    return np.exp(z), np.diff(full, axis=1)


def bellman(v, e):
    income, trans = income_process(e.rho, e.sigma, e.n_income)
    assets = np.linspace(0.0, 40.0, e.n_assets)
    expected = trans @ v
    new = np.full_like(v, -np.inf)
    for k, saved in enumerate(assets):
        c = income[:, None] + (1 + e.rate) * assets[None, :] - saved
        u = np.where(c > 0, np.maximum(c, 1e-9) ** (1 - e.gamma) / (1 - e.gamma), -1e10)
        new = np.maximum(new, u + e.beta * expected[:, k : k + 1])
    return new


def solve(eco):
    value = np.zeros((eco.n_income, eco.n_assets))
    gap, iteration = np.inf, 0
    while gap > eco.tol and iteration < 5000:
        updated = bellman(value, eco)
        gap = np.abs(updated - value).max()
        value = updated
        iteration += 1
    return value


if __name__ == "__main__":
    print(solve(Economy()).mean())
