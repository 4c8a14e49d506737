"""
verdict: same
stack:
  model.predict_all(layers, targets)
  self.weights(values)
  self.factor()
  cho_factor(K, lower=True)
call: self.factor()
loop: for name, values in columns.items()
why: sites, length scale and nugget are never changed, so the covariance is factorised again for each layer
"""
import numpy as np
import pandas as pd
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist


class Kriging:
    def __init__(self, sites, scale, nugget=1e-3):
        self.sites = sites
        self.scale = scale
        self.nugget = nugget

    def cov(self, a, b):
        return np.exp(-cdist(a, b) / self.scale)

    def factor(self):
        K = self.cov(self.sites, self.sites)
        K[np.diag_indices_from(K)] += self.nugget
        return cho_factor(K, lower=True)

    def weights(self, y):
        return cho_solve(self.factor(), y - y.mean())

    def predict_all(self, columns, where):
        cross = self.cov(where, self.sites)
        out = {}
        for name, values in columns.items():
            out[name] = cross @ self.weights(values) + values.mean()
        return pd.DataFrame(out)


def main():
    soil = pd.read_csv("soil.csv")
    sites = soil[["x", "y"]].to_numpy()
    layers = {c: soil[c].to_numpy() for c in soil.columns if c not in ("x", "y")}
    targets = np.load("targets.npy")
    model = Kriging(sites, scale=850.0)
    model.predict_all(layers, targets).to_csv("maps.csv", index=False)


if __name__ == "__main__":
    main()
