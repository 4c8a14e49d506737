"""How stable are random ecosystems? Powers of many random matrices, over a pool of processes."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time

import numpy as np


def is_stable(job: tuple[int, int, float]) -> bool:
    """Return whether a community of species with random interactions returns to rest."""
    seed, size, strength = job
    rng = np.random.default_rng(seed)
    interactions = rng.normal(0, strength / size**0.5, (size, size))
    propagator = np.eye(size) + 0.05 * (interactions - np.eye(size))
    for _ in range(6):
        propagator = propagator @ propagator
        propagator /= max(1.0, float(np.abs(propagator).max()))
    return bool(np.abs(propagator).max() < 0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--size", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()

    done, stable, began_s = 0, 0, time.monotonic()
    with multiprocessing.Pool(options.processes) as pool:
        while time.monotonic() - began_s < options.seconds:
            jobs = [
                (1_000_000 * options.seed + done + number, options.size, 0.9)
                for number in range(8 * options.processes)
            ]
            stable += sum(pool.imap_unordered(is_stable, jobs))
            done += len(jobs)
    elapsed_s = time.monotonic() - began_s
    print(f"{done} steps, {stable} stable, {done / elapsed_s:.3f} steps/s")


if __name__ == "__main__":
    main()
