"""Waits with exponential back-off for the result file of another process, then works with it."""
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

SOLVER = r"""
import os, sys, time
import numpy as np
rng = np.random.default_rng(0)
end = time.monotonic() + 80
a = rng.standard_normal((200, 200))
while time.monotonic() < end:
    q, r = np.linalg.qr(a)
    a = r @ q + 1e-3 * rng.standard_normal((200, 200))
np.save(sys.argv[1] + ".tmp.npy", a)
os.rename(sys.argv[1] + ".tmp.npy", sys.argv[1])
"""


def wait_for(path, first=0.5, longest=32.0):
    delay = first
    while not os.path.exists(path):
        time.sleep(delay)
        delay = min(delay * 2, longest)


def main():
    env = dict(os.environ, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "matrix.npy")
        solver = subprocess.Popen([sys.executable, "-c", SOLVER, path], env=env)
        print("waiting for the matrix of the solver", flush=True)
        t = time.monotonic()
        wait_for(path)
        print(f"matrix arrived, waited {time.monotonic() - t:.0f} s", flush=True)
        a = np.load(path)
        solver.wait()
        v = np.ones(len(a))
        for step in range(600):
            v = a @ v
            v /= np.linalg.norm(v)
            time.sleep(0.05)
            if step % 100 == 0:
                print(f"power step {step} rayleigh {v @ a @ v:.5f}", flush=True)
    print("done")


if __name__ == "__main__":
    main()
