"""
verdict: same
stack:
  solve(Household())
  bellman(value, hh)
  income_chain(problem.rho, problem.sigma, problem.states)
  norm.cdf((z[j] - rho_ * z[i] + half) / sigma_)
call: income_chain(problem.rho, problem.sigma, problem.states)
loop: while gap > hh.tolerance
why: the income process has constant parameters but is discretised again in each step of the value function iteration
"""
from dataclasses import dataclass, field

import numpy as np
from scipy.stats import norm


@dataclass
class Household:
    beta: float = 0.96
    rate: float = 0.03
    rho: float = 0.9
    sigma: float = 0.2
    states: int = 41
    tolerance: float = 1e-6
    assets: np.ndarray = field(default_factory=lambda: np.linspace(0.0, 40.0, 200))


def income_chain(rho_, sigma_, n):
    z = np.linspace(-3, 3, n) * sigma_ / np.sqrt(1 - rho_**2)
    half = (z[1] - z[0]) / 2
    P = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            P[i, j] = norm.cdf((z[j] - rho_ * z[i] + half) / sigma_)
    P[:, 1:] = np.diff(P, axis=1)
    return np.exp(z), P / P.sum(axis=1, keepdims=True)


def bellman(v, problem):
    income, P = income_chain(problem.rho, problem.sigma, problem.states)
    expected = problem.beta * v @ P.T
    cash = (1 + problem.rate) * problem.assets[:, None] + income[None, :]
    best = np.full_like(v, -np.inf)
    for k, saved in enumerate(problem.assets):
        c = cash - saved
        utility = np.where(c > 0, np.log(np.maximum(c, 1e-12)), -1e10)
        best = np.maximum(best, utility + expected[k][None, :])
    return best


def solve(hh):
    value = np.zeros((len(hh.assets), hh.states))
    gap = np.inf
    while gap > hh.tolerance:
        updated = bellman(value, hh)
        gap = np.abs(updated - value).max()
        value = updated
    return value


if __name__ == "__main__":
    print(solve(Household()).mean())
