"""
verdict: none
stack:
  explore(budget=150)
  propose(known_x, known_y)
  model.fit(np.array(x), np.array(y))
why: the two lists grow in each iteration, and the candidates of propose are drawn at random
"""
import json
import subprocess

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern, WhiteKernel

LOW = np.array([300.0, 0.1, 1.0])
HIGH = np.array([900.0, 5.0, 40.0])
rng = np.random.default_rng(2)


def experiment(point):
    text = subprocess.run(["./reactor", json.dumps(list(point))], capture_output=True).stdout
    return json.loads(text)["yield"]


def add(x, y, point):
    x.append(list((point - LOW) / (HIGH - LOW)))
    y.append(experiment(point))


def propose(x, y, n=5000):
    kernel = Matern(length_scale=[0.3] * 3, nu=2.5) + WhiteKernel(1e-3)
    model = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=3)
    model.fit(np.array(x), np.array(y))
    unit = rng.random((n, 3))
    mean, sd = model.predict(unit, return_std=True)
    return LOW + unit[(mean + 2 * sd).argmax()] * (HIGH - LOW)


def explore(budget):
    known_x, known_y = [], []
    for start in range(8):
        add(known_x, known_y, rng.uniform(LOW, HIGH))
    while len(known_y) < budget:
        add(known_x, known_y, propose(known_x, known_y))
    return max(zip(known_y, known_x))


if __name__ == "__main__":
    print(explore(budget=150))
