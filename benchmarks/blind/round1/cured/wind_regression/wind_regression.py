"""Ridge regression on hourly wind-farm data, retrained each 'epoch' with new noise."""
import os
import tempfile
import numpy as np

with tempfile.TemporaryDirectory() as d:
    path = os.path.join(d, "farm.csv")
    rng = np.random.default_rng(0)
    np.savetxt(path, rng.normal(size=(16000, 24)), delimiter=",", fmt="%.6f")
    coef = []
    for epoch in range(24):
        if epoch == 0:
            table = np.genfromtxt(path, delimiter=",")
        x, y = table[:, :-1], table[:, -1]
        feats = np.hstack([x, x**2, np.sin(x), np.cos(x), np.tanh(x), np.sin(2 * x), np.cos(2 * x), np.tanh(3 * x)])
        boot = rng.integers(0, len(x), len(x))
        a, b = feats[boot], y[boot]
        w = np.linalg.solve(a.T @ a + 0.1 * np.eye(a.shape[1]), a.T @ b)
        coef.append(w)
        print(epoch, np.round(w[:3], 4), flush=True)
    print("spread", np.std(coef, axis=0).mean())
