"""
verdict: none
stack:
  campaign(furnace, budget=120)
  surrogate(tried, measured)
  model.fit(np.array(X), np.array(y))
why: record appends a new alloy to both lists in each round, so the surrogate is fitted to more data each time
"""
import numpy as np
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern, WhiteKernel

CANDIDATES = np.random.default_rng(11).dirichlet(np.ones(5), size=4000)


def surrogate(X, y):
    kernel = Matern(length_scale=np.ones(5), nu=2.5) + WhiteKernel(1e-3)
    model = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=8, random_state=0)
    model.fit(np.array(X), np.array(y))
    return model


def improvement(model, best):
    mean, sd = model.predict(CANDIDATES, return_std=True)
    z = (mean - best) / np.maximum(sd, 1e-9)
    return (mean - best) * norm.cdf(z) + sd * norm.pdf(z)


def record(alloy, experiment, log_x, log_y):
    log_x.append(alloy)
    log_y.append(experiment(alloy))


def furnace(alloy):
    hardness = 400 + 300 * alloy[0] * alloy[3] - 150 * (alloy[1] - 0.2) ** 2
    return hardness + 80 * np.sin(9 * alloy[4])


def campaign(experiment, budget):
    tried, measured = [], []
    for alloy in CANDIDATES[:8]:
        record(alloy, experiment, tried, measured)
    while len(tried) < budget:
        model = surrogate(tried, measured)
        pick = CANDIDATES[int(improvement(model, max(measured)).argmax())]
        record(pick, experiment, tried, measured)
    return tried[int(np.argmax(measured))], max(measured)


if __name__ == "__main__":
    print(campaign(furnace, budget=120))
