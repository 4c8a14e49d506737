"""Calendar ages of a sequence of burials from radiocarbon dates (Metropolis sampling)."""
import json
import tempfile
from pathlib import Path

import numpy as np
from scipy import stats

N_BURIALS = 14
STEPS = 11_000
SAVE_EVERY = 100
OLDEST, YOUNGEST = 4200.0, 2600.0


def calibration_curve():
    """A stand-in for the calibration curve: radiocarbon age and error by calendar age."""
    calendar = np.arange(2000.0, 5000.0, 5.0)
    wiggle = 45 * np.sin(calendar / 61.0) + 25 * np.sin(calendar / 23.0 + 1.0)
    return calendar, 0.93 * calendar + 140.0 + wiggle, 14.0 + 4.0 * np.sin(calendar / 200.0)


CALENDAR, RADIOCARBON, CURVE_ERROR = calibration_curve()


def log_likelihood(ages, measured, error):
    total = 0.0
    for age, date, sigma in zip(ages, measured, error):
        mean = np.interp(age, CALENDAR, RADIOCARBON)
        spread = np.hypot(sigma, np.interp(age, CALENDAR, CURVE_ERROR))
        total += stats.norm.logpdf(date, loc=mean, scale=spread)
    return total


def log_prior(ages):
    """The burials lie one above the other: ages must decrease, within the phase."""
    if ages[0] > OLDEST or ages[-1] < YOUNGEST or np.any(np.diff(ages) > 0):
        return -np.inf
    return -(N_BURIALS - 2) * np.log(ages[0] - ages[-1] + 1.0)


def sample(measured, error, rng, folder):
    ages = np.linspace(3900.0, 3000.0, N_BURIALS)
    current = log_likelihood(ages, measured, error) + log_prior(ages)
    chain = []
    accepted = 0
    for step in range(STEPS):
        proposal = ages.copy()
        which = rng.integers(0, N_BURIALS, 3)
        proposal[which] += rng.normal(0, 22.0, 3)
        prior = log_prior(proposal)
        if np.isfinite(prior):
            value = log_likelihood(proposal, measured, error) + prior
            if np.log(rng.random()) < value - current:
                ages, current = proposal, value
                accepted += 1
        else:
            rng.random()
        chain.append(ages.tolist() + [current])
        if (step + 1) % SAVE_EVERY == 0:
            with open(folder / "chain.json", "w") as out:
                json.dump(chain, out)
    return np.array(chain), accepted / STEPS


def main():
    rng = np.random.default_rng(1066)
    truth = np.sort(rng.uniform(2950, 3950, N_BURIALS))[::-1]
    error = rng.uniform(22, 38, N_BURIALS)
    measured = np.interp(truth, CALENDAR, RADIOCARBON) + rng.normal(0, error)
    with tempfile.TemporaryDirectory() as name:
        chain, rate = sample(measured, error, rng, Path(name))
    kept = chain[STEPS // 4:, :-1]
    low, high = np.percentile(kept, [2.5, 97.5], axis=0)
    print("steps", STEPS, "accepted %.2f" % rate)
    print("mean width of the intervals %.0f years" % (high - low).mean())
    print("duration of the cemetery %.0f years" % (kept[:, 0] - kept[:, -1]).mean())


if __name__ == "__main__":
    main()
