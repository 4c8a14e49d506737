"""Finds the bath temperature for a wanted dye uptake by repeated runs of a solver program."""
import json
import os
import subprocess
import sys
import tempfile
import time

WANTED = 0.42
ROUNDS = 14

SOLVER = '''
import json, sys
import numpy as np

temperature = float(sys.argv[1])
rate = 2.0e-3 * np.exp(0.045 * (temperature - 60.0))
layers = 240
fibre = np.zeros(layers)
bath = 1.0
for step in range(36000):
    inside = np.empty(layers)
    inside[1:-1] = fibre[2:] - 2.0 * fibre[1:-1] + fibre[:-2]
    inside[0] = fibre[1] - fibre[0]
    inside[-1] = bath - 2.0 * fibre[-1] + fibre[-2]
    taken = rate * (bath - fibre[-1]) / layers
    fibre = fibre + 0.4 * rate / 0.01 * inside
    bath -= taken
with open(sys.argv[2], "w") as f:
    json.dump({"uptake": float(fibre.mean()), "bath": float(bath)}, f)
'''


def run_solver(script, temperature, target):
    job = subprocess.Popen([sys.executable, script, repr(temperature), target])
    while job.poll() is None:
        time.sleep(2.0)
    if job.returncode:
        raise RuntimeError(f"solver failed at {temperature}")
    with open(target) as f:
        return json.load(f)


def bisect(script, folder):
    low, high = 20.0, 95.0
    trail = []
    for number in range(ROUNDS):
        middle = 0.5 * (low + high)
        result = run_solver(script, middle, os.path.join(folder, f"run_{number:02d}.json"))
        trail.append((middle, result["uptake"], result["bath"]))
        if result["uptake"] < WANTED:
            low = middle
        else:
            high = middle
    return trail


def main():
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "dye_solver.py")
        with open(script, "w") as f:
            f.write(SOLVER)
        trail = bisect(script, folder)
    temperature, uptake, bath = trail[-1]
    print(f"{len(trail)} runs of the solver")
    print(f"temperature {temperature:.4f} C for an uptake of {uptake:.5f}")
    print(f"left in the bath {bath:.5f}")


if __name__ == "__main__":
    main()
