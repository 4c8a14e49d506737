"""Outbreak sizes of a cattle disease for several trade bans: many independent runs, two workers."""
import multiprocessing as mp

import numpy as np

HERDS = 4000
DAYS = 240
RUNS = 40
BANS = (0.0, 0.3, 0.6, 0.9)


def one_run(task):
    """Stochastic SEIR in all herds with trade between them; returns (ban, cases, herds hit)."""
    ban, seed = task
    rng = np.random.default_rng([seed, int(ban * 10)])
    size = rng.integers(30, 300, HERDS)
    partner = rng.integers(0, HERDS, (DAYS, HERDS))
    exposed = np.zeros(HERDS, dtype=np.int64)
    sick = np.zeros(HERDS, dtype=np.int64)
    immune = np.zeros(HERDS, dtype=np.int64)
    sick[rng.integers(0, HERDS, 8)] = 3
    hit = sick > 0
    for day in range(DAYS):
        healthy = size - exposed - sick - immune
        force = 1.0 - np.exp(-0.22 * sick / size)
        fresh = rng.binomial(healthy, force)
        turned = rng.binomial(exposed, 0.25)
        cured = rng.binomial(sick, 0.1)
        exposed += fresh - turned
        sick += turned - cured
        immune += cured
        trade = rng.random(HERDS) < 0.05 * (1.0 - ban)
        carrier = trade & (rng.random(HERDS) < exposed / size)
        target = partner[day, carrier]
        room = size[target] - exposed[target] - sick[target] - immune[target] > 0
        np.add.at(exposed, target[room], 1)
        over = exposed + sick + immune - size
        exposed -= np.clip(over, 0, exposed)
        hit |= (exposed > 0) | (sick > 0)
    return ban, int(immune.sum() + sick.sum()), int(hit.sum())


def main():
    tasks = [(ban, 1000 + run) for run in range(RUNS) for ban in BANS]
    with mp.get_context("fork").Pool(2) as pool:
        results = list(pool.imap_unordered(one_run, tasks, chunksize=2))
    results.sort()
    for ban in BANS:
        part = np.array([r[1:] for r in results if r[0] == ban])
        print("ban %.1f: cases %.0f +- %.0f, herds hit %.0f"
              % (ban, part[:, 0].mean(), part[:, 0].std(), part[:, 1].mean()))


if __name__ == "__main__":
    main()
