"""Uncertainty of the trend in a long groundwater record.

One logger has recorded the head of a well for years.  The trend is fitted
on monthly means; its uncertainty comes from a Monte Carlo resampling of the
record in blocks, spread over two processes.
"""
import functools
import multiprocessing as mp
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

PER_MONTH = 43_200
MONTHS = 120
REPLICAS = 160
BLOCK = 1440


def make_record(rng):
    """Head in metres, one value a minute."""
    n = PER_MONTH * MONTHS
    t = np.arange(n) / n
    head = 12.0 - 0.8 * t + 0.35 * np.sin(2 * np.pi * t * MONTHS / 12)
    noise = np.cumsum(rng.normal(0, 0.004, n))
    noise -= np.linspace(0, noise[-1], n)
    return head + 0.05 * noise + rng.normal(0, 0.02, n)


def slope(monthly):
    x = np.arange(len(monthly)) / 12.0
    x -= x.mean()
    return float(x @ (monthly - monthly.mean()) / (x @ x))


def replica(seed, record):
    """Trend of one resampled record, in metres a year."""
    rng = np.random.default_rng(seed)
    blocks = record.reshape(MONTHS, PER_MONTH // BLOCK, BLOCK)
    monthly = np.empty(MONTHS)
    for m in range(MONTHS):
        pick = rng.integers(0, PER_MONTH // BLOCK, PER_MONTH // BLOCK)
        sample = blocks[m][pick]
        monthly[m] = np.median(sample)
    return slope(monthly)


def plain_trend(record):
    return slope(record.reshape(MONTHS, PER_MONTH).mean(axis=1))


def main():
    record = make_record(np.random.default_rng(4))
    print(f"record: {len(record)} values, {record.nbytes / 1e6:.0f} MB")
    print(f"trend: {plain_trend(record):+.5f} m a year")
    job = functools.partial(replica, record=record)
    slopes = []
    with mp.Pool(2) as pool:
        for value in pool.imap(job, range(REPLICAS)):
            slopes.append(value)
    slopes = np.sort(slopes)
    low, high = slopes[int(0.025 * REPLICAS)], slopes[int(0.975 * REPLICAS)]
    print(f"replicas: {REPLICAS}")
    print(f"95 % interval: {low:+.5f} to {high:+.5f} m a year")


if __name__ == "__main__":
    main()
