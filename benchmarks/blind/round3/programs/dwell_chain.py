"""Posterior of the closing rate of an ion channel from its open dwell times.

A Metropolis chain over (shape, scale, gating delay, drift).
"""
import numpy as np
from scipy import stats
from scipy.special import gammaln

STEPS = 30_000
BURN = 4_000


def patch_recording(seed=13):
    rng = np.random.default_rng(seed)
    dwell = rng.gamma(2.3, 1.7, 220) + 0.35
    t = np.linspace(0.0, 30.0, 10_000)
    current = 4.0 * np.exp(-t / 9.0) + 0.6 * np.sin(0.7 * t)
    current += rng.normal(0.0, 0.25, t.size)
    return dwell, t, current


def gating_current(t, drift, amplitude=4.0):
    """Relaxation of the current with a slow change of its time constant."""
    rate = np.exp(-drift * t / 30.0) / 9.0
    phase = np.zeros(t.size)
    np.cumsum(0.5 * (rate[1:] + rate[:-1]) * (t[1] - t[0]), out=phase[1:])
    smooth = np.convolve(amplitude * np.exp(-phase), np.ones(9) / 9.0, mode="same")
    smooth[:4] = amplitude * np.exp(-phase[:4])
    smooth[-4:] = amplitude * np.exp(-phase[-4:])
    return smooth


def log_prior(shape, scale, delay, drift):
    if shape <= 0 or scale <= 0 or delay < 0:
        return -np.inf
    value = stats.gamma.logpdf(shape, 2.0, scale=1.5)
    value += stats.lognorm.logpdf(scale, 0.6, scale=1.5)
    value += stats.expon.logpdf(delay, scale=0.5)
    value += stats.norm.logpdf(drift, 0.0, 0.2)
    return value


def log_likelihood(theta, dwell, t, current):
    shape, scale, delay, drift = theta
    open_time = dwell - delay
    if open_time.min() <= 0.0:
        return -np.inf
    norm = gammaln(shape) + shape * np.log(scale)
    value = np.sum((shape - 1.0) * np.log(open_time) - open_time / scale - norm)
    misfit = (current - gating_current(t, drift)) / 0.25
    return value - 0.5 * np.dot(misfit, misfit)


def run_chain(dwell, t, current):
    rng = np.random.default_rng(99)
    theta = np.array([2.0, 2.0, 0.1, 0.0])
    width = np.array([0.18, 0.16, 0.05, 0.02])
    score = log_prior(*theta) + log_likelihood(theta, dwell, t, current)
    kept = np.empty((STEPS, 4))
    accepted = 0
    for step in range(STEPS):
        trial = theta + width * rng.standard_normal(4)
        new = log_prior(*trial)
        if np.isfinite(new):
            new += log_likelihood(trial, dwell, t, current)
        if np.log(rng.random()) < new - score:
            theta, score = trial, new
            accepted += 1
        kept[step] = theta
    return kept[BURN:], accepted / STEPS


def main():
    dwell, t, current = patch_recording()
    current = current - 0.6 * np.sin(0.7 * t)  # mains ripple, known
    kept, rate = run_chain(dwell, t, current)
    print(f"acceptance {rate:.3f}")
    for name, column in zip(("shape", "scale", "delay", "drift"), kept.T):
        lo, mid, hi = np.quantile(column, [0.05, 0.5, 0.95])
        print(f"{name:>6} {mid:7.3f}  [{lo:.3f}, {hi:.3f}]")


if __name__ == "__main__":
    main()
