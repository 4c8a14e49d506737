"""
verdict: set
stack:
  mixture.fit(catalogue)
  self.expected(fluxes)
  self.colours(template)
  np.interp(WAVE, LAMBDA * (1 + z), template.flux)
call: self.colours(template)
loop: for iteration in range(self.iterations)
why: the redshifted fluxes of the templates do not depend on the mixture weights, and each EM iteration goes through the same templates
"""
from collections import namedtuple
from pathlib import Path

import numpy as np

Template = namedtuple("Template", "name flux")
LAMBDA = np.linspace(1000, 12000, 20000)
WAVE = np.linspace(3000, 11000, 4000)
BANDS = np.load("filters.npy")


class Mixture:
    def __init__(self, templates, redshifts, iterations=40):
        self.templates = templates
        self.redshifts = redshifts
        self.iterations = iterations
        self.weights = np.full(len(templates), 1 / len(templates))

    def colours(self, template):
        rows = []
        for z in self.redshifts:
            shifted = np.interp(WAVE, LAMBDA * (1 + z), template.flux)
            rows.append(BANDS @ shifted)
        rows = np.array(rows)
        return rows / rows.sum(axis=1, keepdims=True)

    def expected(self, observed):
        likelihood = np.zeros((len(observed), len(self.templates)))
        for j, template in enumerate(self.templates):
            model = self.colours(template)
            chi2 = ((observed[:, None, :] - model[None]) ** 2).sum(-1) / 0.02**2
            likelihood[:, j] = self.weights[j] * np.exp(-chi2 / 2).mean(axis=1)
        return likelihood / likelihood.sum(axis=1, keepdims=True)

    def fit(self, fluxes):
        for iteration in range(self.iterations):
            responsibility = self.expected(fluxes)
            self.weights = responsibility.mean(axis=0)
        return self


if __name__ == "__main__":
    library = [Template(p.stem, np.load(p)) for p in sorted(Path("sed").glob("*.npy"))]
    catalogue = np.load("fluxes.npy")
    mixture = Mixture(library, np.linspace(0, 2, 200))
    print(mixture.fit(catalogue).weights)
