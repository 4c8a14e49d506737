"""Simulation steps, then 70 s of an external solver (a child that computes), then steps again."""
import os
import subprocess
import sys
import time

import numpy as np


def solve(seconds):
    rng = np.random.default_rng(1)
    end = time.monotonic() + seconds
    best = np.inf
    while time.monotonic() < end:
        a = rng.standard_normal((120, 120))
        best = min(best, float(np.abs(np.linalg.eigvals(a)).max()))
    print(best)


def diffuse(field, seconds):
    end, n = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        lap = sum(np.roll(field, s, ax) for s in (-1, 1) for ax in (0, 1)) - 4 * field
        field += 0.1 * lap
        n += 1
        if n % 100 == 0:
            print(f"step {n} variance {field.var():.6f}", flush=True)
        time.sleep(0.03)


def main():
    field = np.random.default_rng(0).random((128, 128))
    diffuse(field, 25)
    env = dict(os.environ, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    done = subprocess.run([sys.executable, __file__, "solve"], env=env, check=True,
                          capture_output=True, text=True)
    print("solver:", done.stdout.strip(), flush=True)
    field *= float(done.stdout)
    diffuse(field, 25)
    print("done")


if __name__ == "__main__":
    solve(70) if sys.argv[1:] == ["solve"] else main()
