"""A process pool with 40 short tasks and then 4 very long ones (55 s each) on 2 workers."""
import os
import time
from concurrent.futures import ProcessPoolExecutor

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np  # noqa: E402


def integrate(seed, seconds):
    """Monte Carlo volume of the 10-dimensional ball within a fixed time."""
    rng = np.random.default_rng(seed)
    inside = total = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        points = rng.uniform(-1, 1, (10_000, 10))
        inside += int(((points ** 2).sum(1) < 1).sum())
        total += len(points)
    return 2 ** 10 * inside / total


def main():
    with ProcessPoolExecutor(max_workers=2) as pool:
        rough = list(pool.map(integrate, range(40), [0.2] * 40))
        print(f"rough: {np.mean(rough):.4f} +- {np.std(rough):.4f}", flush=True)
        fine = list(pool.map(integrate, range(100, 104), [55.0] * 4))
    print(f"fine: {np.mean(fine):.5f} +- {np.std(fine):.5f}", flush=True)


if __name__ == "__main__":
    main()
