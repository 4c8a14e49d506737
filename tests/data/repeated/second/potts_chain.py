"""
verdict: none
stack:
  chain.sample(50000)
  self.log_posterior()
  self.model.logpdf(self.theta)
  density.logpdf(self.data)
why: propose and reject change self.theta, so the posterior is of another state in each step
"""
import numpy as np
from scipy.stats import multivariate_t


class Posterior:
    def __init__(self, data):
        self.data = data

    def logpdf(self, theta):
        location, scale, nu = theta[:2], np.exp(theta[2]), 2 + np.exp(theta[3])
        density = multivariate_t(loc=location, shape=scale * np.eye(2), df=nu)
        return density.logpdf(self.data).sum() - 0.5 * (theta**2).sum() / 100


class Chain:
    def __init__(self, model, seed=0):
        self.model = model
        self.rng = np.random.default_rng(seed)
        self.theta = np.zeros(4)
        self._backup = None

    def log_posterior(self):
        return self.model.logpdf(self.theta)

    def propose(self, width=0.1):
        self._backup = self.theta.copy()
        self.theta[self.rng.integers(4)] += width * self.rng.standard_normal()

    def reject(self):
        self.theta[:] = self._backup

    def sample(self, n):
        trace = np.empty((n, 4))
        current = -np.inf
        for i in range(n):
            self.propose()
            trial = self.log_posterior()
            if np.log(self.rng.random()) < trial - current:
                current = trial
            else:
                self.reject()
            trace[i] = self.theta
        return trace


if __name__ == "__main__":
    chain = Chain(Posterior(np.load("points.npy")))
    print(chain.sample(50000).mean(axis=0))
