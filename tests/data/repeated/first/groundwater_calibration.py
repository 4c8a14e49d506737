"""
verdict: none
stack:
  calibrate(Path("model"), trials=400)
  run_model(folder)
  read_heads(directory / HEADS)
  np.loadtxt(name, skiprows=4)
why: the external program overwrites the file of the same name after each new parameter file
"""
import subprocess
from pathlib import Path

import numpy as np

PARAMETERS = "zones.par"
HEADS = "heads.out"


def write_parameters(directory, values):
    lines = [f"zone{k} {v:.6e}" for k, v in enumerate(values)]
    (directory / PARAMETERS).write_text("\n".join(lines) + "\n")


def read_heads(name):
    return np.loadtxt(name, skiprows=4)[:, 3]


def run_model(directory):
    subprocess.run(["./mf6"], cwd=directory, check=True, stdout=subprocess.DEVNULL)
    return read_heads(directory / HEADS)


def calibrate(folder, trials, seed=1):
    rng = np.random.default_rng(seed)
    observed = np.loadtxt(folder / "observed.txt")
    best = np.full(6, 1e-5)
    error = np.inf
    for trial in range(trials):
        values = best * np.exp(0.3 * rng.normal(size=len(best)))
        write_parameters(folder, values)
        heads = run_model(folder)
        rmse = np.sqrt(((heads - observed) ** 2).mean())
        if rmse < error:
            best, error = values, rmse
            print(trial, f"{rmse:.4f}")
    return best


if __name__ == "__main__":
    print(calibrate(Path("model"), trials=400))
