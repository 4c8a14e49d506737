"""
verdict: same
stack:
  fit("soil.csv")
  minimize(cost, start, method="Nelder-Mead")
  lib:scipy/optimize/_minimize.py:minimize
  lib:scipy/optimize/_optimize.py:_minimize_neldermead
  distances(coords)
  np.sqrt(((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2))
call: distances(coords)
loop: def cost(theta)
why: the objective computes the distances of the same sample points in each evaluation by the optimiser
"""
import numpy as np
import pandas as pd
from scipy.optimize import minimize


def distances(points):
    return np.sqrt(((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2))


def make_cost(coords, y):
    n = len(y)

    def cost(theta):
        length, sill, nugget = np.exp(theta)
        d = distances(coords)
        k = sill * np.exp(-d / length) + nugget * np.eye(n)
        sign, logdet = np.linalg.slogdet(k)
        if sign <= 0:
            return 1e12
        return 0.5 * (logdet + y @ np.linalg.solve(k, y))

    return cost


def fit(path):
    soil = pd.read_csv(path)
    xy = soil[["easting", "northing"]].to_numpy(float)
    y = soil["carbon"].to_numpy(float)
    cost = make_cost(xy, y - y.mean())
    start = np.log([500.0, y.var(), 0.1 * y.var()])
    result = minimize(cost, start, method="Nelder-Mead")
    return np.exp(result.x)


if __name__ == "__main__":
    print(fit("soil.csv"))
