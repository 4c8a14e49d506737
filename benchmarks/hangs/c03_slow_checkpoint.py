"""NumPy training with a checkpoint of 180 MB by h5py to slow storage (about 4 MB/s, 45 s)."""
import os
import tempfile
import time

import h5py
import numpy as np

ROWS, COLS = 180, 262_144  # 1 MB a row


def write_checkpoint(path, weights, rng):
    with h5py.File(path, "w") as f:
        f["weights"] = weights
        state = f.create_dataset("optimizer", (ROWS, COLS), "f4", chunks=(1, COLS))
        for row in range(ROWS):
            t = time.monotonic()
            state[row] = rng.random(COLS, dtype=np.float32)
            f.flush()
            time.sleep(max(0.0, 0.25 - (time.monotonic() - t)))  # the quota of the file server


def train(w, seconds, rng):
    end, n = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        x = rng.standard_normal((64, w.size))
        y = x[:, :10].sum(1)
        err = x @ w - y
        w -= 0.01 * x.T @ err / len(x)
        n += 1
        if n % 100 == 0:
            print(f"step {n} mse {np.mean(err ** 2):.5f}", flush=True)
        time.sleep(0.03)


def main():
    rng = np.random.default_rng(0)
    w = np.zeros(100)
    with tempfile.TemporaryDirectory() as d:
        train(w, 40, rng)
        t = time.monotonic()
        path = os.path.join(d, "checkpoint.h5")
        write_checkpoint(path, w, rng)
        size = os.path.getsize(path) / 2**20
        print(f"checkpoint of {size:.0f} MB in {time.monotonic() - t:.0f} s", flush=True)
        train(w, 40, rng)
    print("done")


if __name__ == "__main__":
    main()
