"""Depth dose of a proton beam in water: Monte Carlo histories in two processes."""
import multiprocessing as mp

import numpy as np

WORKERS = 2
TASKS = 16
HISTORIES = 60_000
STEP = 0.05
DEPTHS = 640


def stopping_power(energy):
    """Bragg-Kleeman stopping power in water (MeV per cm)."""
    alpha, p = 0.0022, 1.77
    return energy ** (1 - p) / (alpha * p)


def simulate(seed):
    """Follow a bundle of protons step by step; return only the deposited dose."""
    rng = np.random.default_rng(seed)
    energy = rng.normal(150.0, 1.2, HISTORIES)
    x = rng.normal(0, 0.3, HISTORIES)
    slope = rng.normal(0, 0.003, HISTORIES)
    dose = np.zeros(DEPTHS)
    spread = np.zeros(DEPTHS)
    for depth in range(DEPTHS):
        if len(energy) == 0:
            break
        mean_loss = stopping_power(energy) * STEP
        loss = mean_loss + rng.normal(0, 1.0, len(energy)) * np.sqrt(0.087 * STEP)
        loss = np.clip(loss, 0.0, energy)
        dose[depth] = loss.sum()
        spread[depth] = (x ** 2).sum() / len(x)
        slope += rng.normal(0, 1.0, len(energy)) * 14.1 / (2 * energy) * np.sqrt(STEP / 36.1)
        x += slope * STEP
        energy = energy - loss
        lost = rng.random(len(energy)) < 0.012 * STEP
        alive = (energy > 1.0) & ~lost
        dose[depth] += energy[~alive].sum() * 0.6
        energy, x, slope = energy[alive], x[alive], slope[alive]
    return dose, spread


def main():
    dose = np.zeros(DEPTHS)
    spread = []
    with mp.Pool(WORKERS) as pool:
        for part, width in pool.imap(simulate, range(100, 100 + TASKS)):
            dose += part
            spread.append(width)
    dose /= TASKS * HISTORIES
    peak = int(dose.argmax())
    fall = peak + int(np.argmax(dose[peak:] < 0.8 * dose[peak]))
    print("histories:", TASKS * HISTORIES)
    print("peak at %.2f cm, 80 %% at %.2f cm" % (peak * STEP, fall * STEP))
    print("entrance to peak: %.3f" % (dose[:20].mean() / dose[peak]))
    print("beam width at 10 cm: %.3f cm" % np.sqrt(np.mean(spread, axis=0)[200]))


if __name__ == "__main__":
    main()
