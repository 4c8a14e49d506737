"""Exact Gaussian-process regression of an irregularly sampled tide gauge."""
import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

N_READINGS = 4500
N_NEW = 400
EVALUATIONS = 15
M2, K1 = 12.42 / 24.0, 23.93 / 24.0  # periods in days


def make_readings(rng):
    t = np.sort(rng.uniform(0.0, 200.0, N_READINGS + N_NEW))
    surge = np.cumsum(rng.normal(0, 0.02, len(t)))
    surge -= np.convolve(surge, np.ones(801) / 801, mode="same")
    level = 1.2 * np.cos(2 * np.pi * t / M2) + 0.4 * np.cos(2 * np.pi * t / K1 + 1.0)
    level += surge + rng.normal(0, 0.05, len(t))
    held = np.zeros(len(t), bool)
    held[rng.choice(len(t), N_NEW, replace=False)] = True
    return t[~held], level[~held], t[held], level[held]


class TideModel:
    def __init__(self, t, y):
        self.t = t
        self.mean = y.mean()
        self.y = y - self.mean
        self.gap = np.abs(t[:, None] - t[None, :])
        tide = np.zeros_like(self.gap)
        for period in (M2, K1):
            tide += np.cos(2 * np.pi * self.gap / period)
        self.tide = tide
        self.count = 0

    def covariance(self, theta):
        tide, surge, length, noise = np.exp(theta)
        k = self.gap * (-1.0 / length)
        np.exp(k, out=k)
        k *= surge
        k += tide * self.tide
        k[np.diag_indices_from(k)] += noise
        return k

    def cost(self, theta):
        factor = cho_factor(self.covariance(theta), lower=True, overwrite_a=True, check_finite=False)
        weight = cho_solve(factor, self.y, check_finite=False)
        value = 0.5 * self.y @ weight + np.log(np.diag(factor[0])).sum()
        self.count += 1
        if self.count % 5 == 0:
            print(f"evaluation {self.count:3d}  cost {value:.2f}", flush=True)
        return value

    def predict(self, theta, new):
        tide, surge, length, _ = np.exp(theta)
        factor = cho_factor(self.covariance(theta), lower=True, overwrite_a=True, check_finite=False)
        weight = cho_solve(factor, self.y, check_finite=False)
        gap = np.abs(new[:, None] - self.t[None, :])
        cross = surge * np.exp(-gap / length)
        for period in (M2, K1):
            cross += tide * np.cos(2 * np.pi * gap / period)
        return cross @ weight + self.mean


def main():
    t, y, t_new, y_new = make_readings(np.random.default_rng(6))
    model = TideModel(t, y)
    start = np.log([0.5, 0.05, 2.0, 0.005])
    best = minimize(
        model.cost, start, method="Nelder-Mead", options={"maxfev": EVALUATIONS, "xatol": 1e-3}
    )
    print("tide, surge, length, noise:", " ".join(f"{v:.4f}" for v in np.exp(best.x)))
    error = model.predict(best.x, t_new) - y_new
    print(f"{len(t)} readings, rms error of {N_NEW} held-out readings {error.std():.4f} m")


if __name__ == "__main__":
    main()
