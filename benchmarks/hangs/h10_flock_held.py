"""Monte Carlo runs which append their results to one shared file, guarded by flock."""
import fcntl
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

# Stand-in for a job of a colleague on the same results file; it takes the lock and keeps it.
OTHER_JOB = r"""
import fcntl, os, sys, time
time.sleep(35)
f = open(sys.argv[1], "a")
fcntl.flock(f, fcntl.LOCK_EX)
while os.getppid() == int(sys.argv[2]):
    time.sleep(2)
"""


def simulate(seed, n=4000, steps=40):
    rng = np.random.default_rng(seed)
    price = np.full(n, 100.0)
    for _ in range(steps):
        price *= np.exp(0.001 + 0.02 * rng.standard_normal(n))
    return float(np.maximum(price - 100.0, 0).mean())


def append_result(path, seed, value):
    with open(path + ".lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with open(path, "a") as f:
            f.write(f"{seed},{value:.6f}\n")


def main():
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "results.csv")
        subprocess.Popen([sys.executable, "-c", OTHER_JOB, path + ".lock", str(os.getpid())])
        t0 = time.time()
        for seed in range(1_000_000):
            value = simulate(seed)
            append_result(path, seed, value)
            time.sleep(0.08)
            if seed % 50 == 0:
                print(f"{time.time() - t0:6.1f} s  seed {seed}  value {value:.4f}", flush=True)


if __name__ == "__main__":
    main()
