"""Sweep the ridge and kernel width of a catalyst-activity model, two trials at a time."""
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SLOTS = 2
GRID = [(width, ridge) for width in (0.2, 0.5, 1.0) for ridge in (1e-3, 1e-2, 1e-1, 1.0)]


def activity_table():
    rng = np.random.default_rng(52)
    x = rng.normal(0, 1, (2400, 14))
    y = np.tanh(x[:, 0] * x[:, 1]) + 0.5 * np.cos(2 * x[:, 2]) + rng.normal(0, 0.1, 2400)
    return x, y


def trial(width, ridge, target):
    """Kernel ridge regression by hand; runs in a process of its own."""
    x, y = activity_table()
    x = x / np.sqrt(x.shape[1])
    square = (x ** 2).sum(1)
    kernel = np.exp(-(square[:, None] + square[None] - 2 * x @ x.T) / (2 * width ** 2))
    errors = []
    for fold in range(3):
        test = np.arange(len(y)) % 3 == fold
        gram = kernel[np.ix_(~test, ~test)] + ridge * np.eye((~test).sum())
        weight = np.linalg.solve(gram, y[~test])
        errors.append(np.mean((kernel[np.ix_(test, ~test)] @ weight - y[test]) ** 2))
    Path(target).write_text(json.dumps({"width": width, "ridge": ridge,
                                        "mse": float(np.mean(errors))}))


def start(folder, number):
    width, ridge = GRID[number]
    target = Path(folder) / f"trial_{number}.json"
    command = [sys.executable, __file__, str(width), str(ridge), str(target)]
    return subprocess.Popen(command)


def run_sweep(folder):
    waiting, running = list(range(len(GRID))), []
    while waiting or running:
        running = [job for job in running if job.poll() is None]
        while waiting and len(running) < SLOTS:
            running.append(start(folder, waiting.pop(0)))
        if running:
            time.sleep(4.0)


def main():
    if len(sys.argv) == 4:
        trial(float(sys.argv[1]), float(sys.argv[2]), sys.argv[3])
        return
    with tempfile.TemporaryDirectory() as folder:
        run_sweep(folder)
        results = [json.loads(path.read_text()) for path in sorted(Path(folder).glob("*.json"))]
    results.sort(key=lambda r: r["mse"])
    print(f"{len(results)} trials")
    for r in results[:4]:
        print(f"width {r['width']} ridge {r['ridge']}: mse {r['mse']:.4f}")


if __name__ == "__main__":
    main()
