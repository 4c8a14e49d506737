"""Global fit of Michaelis-Menten curves: shared inhibition, own rates for each enzyme variant."""
import os
import tempfile

import numpy as np
from scipy.optimize import minimize

VARIANTS = 29
POINTS = 2200


def measure(path):
    rng = np.random.default_rng(58)
    s = rng.uniform(0.05, 12, (VARIANTS, POINTS))
    inh = rng.uniform(0, 4, (VARIANTS, POINTS))
    vmax = rng.lognormal(0.5, 0.4, VARIANTS)
    km = rng.lognormal(0.3, 0.3, VARIANTS)
    v = vmax[:, None] * s / (km[:, None] * (1 + inh / 1.7) + s) ** 1.0 + 0.3
    np.savez(path, s=s, inh=inh, v=v * (1 + rng.normal(0, 0.03, v.shape)))


class Misfit:
    def __init__(self, s, inh, v):
        self.s, self.inh, self.v = s, inh, v
        self.calls = 0

    def __call__(self, theta):
        self.calls += 1
        vmax = np.exp(theta[:VARIANTS])[:, None]
        km = np.exp(theta[VARIANTS:2 * VARIANTS])[:, None]
        ki, base = np.exp(theta[-2]), theta[-1]
        model = vmax * self.s / (km * (1 + self.inh / ki) + self.s) + base
        r = np.arcsinh(model) - np.arcsinh(self.v)
        return float((r * r).mean())


def main():
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "kinetics.npz")
        measure(path)
        z = np.load(path)
        f = Misfit(z["s"], z["inh"], z["v"])
    start = np.concatenate([np.full(VARIANTS, 0.3), np.full(VARIANTS, 0.0), [0.0, 0.0]])
    fit = minimize(f, start, method="L-BFGS-B", options=dict(maxiter=110, maxfun=10 ** 6, ftol=1e-15, gtol=1e-8))
    vmax, km = np.exp(fit.x[:VARIANTS]), np.exp(fit.x[VARIANTS:-2])
    rng = np.random.default_rng(0)
    boot = [np.median(km[rng.integers(0, VARIANTS, VARIANTS)]) for _ in range(2000)]
    print(f"misfit {fit.fun:.6f}, inhibition constant {np.exp(fit.x[-2]):.2f}, base {fit.x[-1]:.2f}")
    print(f"median vmax {np.median(vmax):.2f}, median km {np.median(km):.2f} +- {np.std(boot):.2f}")


if __name__ == "__main__":
    main()
