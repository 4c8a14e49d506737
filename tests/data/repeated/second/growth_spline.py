"""
verdict: same
stack:
  fit(table["age"].to_numpy(), table["height"].to_numpy())
  minimize(loss, start, method="Nelder-Mead", options={"maxiter": 20000})
  lib:scipy/optimize/_minimize.py:minimize
  lib:scipy/optimize/_optimize.py:_minimize_neldermead
  basis(age, KNOTS, 3)
  BSpline(t, unit, degree)(x)
call: basis(age, KNOTS, 3)
loop: def loss(theta)
why: the basis depends on the ages and the knots only, and is evaluated again for each trial of the parameters
"""
import numpy as np
import pandas as pd
from scipy.interpolate import BSpline
from scipy.optimize import minimize

KNOTS = np.array([0.0, 1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 20.0])


def basis(x, knots, degree):
    t = np.concatenate([[knots[0]] * degree, knots, [knots[-1]] * degree])
    count = len(t) - degree - 1
    columns = []
    for k in range(count):
        unit = np.zeros(count)
        unit[k] = 1.0
        columns.append(BSpline(t, unit, degree)(x))
    return np.stack(columns, axis=1)


def fit(age, height, ridge=1e-2):
    def loss(theta):
        B = basis(age, KNOTS, 3)
        residual = height - B @ theta
        huber = np.where(np.abs(residual) < 2, residual**2 / 2, 2 * np.abs(residual) - 2)
        return huber.sum() + ridge * (np.diff(theta, 2) ** 2).sum()

    start = np.full(len(KNOTS) + 2, height.mean())
    return minimize(loss, start, method="Nelder-Mead", options={"maxiter": 20000})


if __name__ == "__main__":
    table = pd.read_csv("growth.csv")
    result = fit(table["age"].to_numpy(), table["height"].to_numpy())
    print(result.x, result.fun)
