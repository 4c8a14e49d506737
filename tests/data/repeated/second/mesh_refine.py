"""
verdict: none
stack:
  refine("wing.geo", "wing.log", size=0.2)
  drag_of(log)
  line.split("=")
why: the external solver writes the log file again in each iteration, so the same path has other content
"""
import subprocess
from pathlib import Path

import numpy as np


def write_geometry(path, spacing):
    text = Path("wing.template").read_text()
    Path(path).write_text(text.replace("@SIZE@", f"{spacing:.6f}"))


def solve(geometry):
    subprocess.run(["gmsh", "-2", geometry, "-o", "wing.su2"], check=True, capture_output=True)
    subprocess.run(["SU2_CFD", "wing.cfg"], check=True, capture_output=True)


def drag_of(path):
    values = []
    with open(path) as handle:
        for line in handle:
            if "CD" not in line:
                continue
            _, right = line.split("=")
            values.append(float(right))
    return float(np.mean(values[-100:]))


def refine(geometry, log, size, tolerance=1e-4, rounds=12):
    history = []
    for level in range(rounds):
        write_geometry(geometry, size)
        solve("wing.geo")
        history.append((size, drag_of(log)))
        if level and abs(history[-1][1] - history[-2][1]) < tolerance:
            break
        size *= 0.7
    return history


if __name__ == "__main__":
    for spacing, drag in refine("wing.geo", "wing.log", size=0.2):
        print(f"{spacing:.5f} {drag:.6f}")
