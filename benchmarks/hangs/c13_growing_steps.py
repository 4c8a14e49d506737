"""Curriculum with growing problem size: steps of 0.05 s at first, 20 s each at the end."""
import os
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np  # noqa: E402

GROWTH, LONGEST = 1.25, 21.0


def relax(x, v, seconds):
    """Integrate the cluster of particles for as long as this stage of the curriculum allows."""
    end, rounds = time.monotonic() + seconds, 0
    while True:
        d = x[:, None, :] - x[None, :, :]
        r2 = (d ** 2).sum(-1) + 0.1
        force = -(d / r2[..., None] ** 1.5).sum(1)
        v += 1e-4 * force
        x += 1e-4 * v
        rounds += 1
        if time.monotonic() >= end:
            return rounds


def main():
    rng = np.random.default_rng(0)
    x, v = rng.standard_normal((60, 3)), np.zeros((60, 3))
    seconds, step = 0.05, 0
    while seconds <= LONGEST:
        rounds = relax(x, v, seconds)
        step += 1
        if step > 500:
            seconds *= GROWTH
        if step % 100 == 0 or step > 500:
            print(f"step {step} rounds {rounds} energy {0.5 * (v ** 2).sum():.6f}", flush=True)
    print("done after", step, "steps")


if __name__ == "__main__":
    main()
