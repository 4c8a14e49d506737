"""Angle of best glide of an aerofoil: a runner process takes panel-method cases from a spool folder."""
import json
import math
import multiprocessing as mp
import os
import tempfile
import time

import numpy as np

PANELS = 1400
CASES = 22
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def aerofoil(panels, thickness=0.12, camber=0.03):
    beta = np.linspace(0.0, 2.0 * np.pi, panels + 1)
    x = 0.5 * (1.0 + np.cos(beta))
    half = 5 * thickness * (0.2969 * np.sqrt(x) - 0.126 * x - 0.3516 * x**2 + 0.2843 * x**3 - 0.1036 * x**4)
    mean = 4 * camber * x * (1.0 - x)
    return x, mean + np.where(beta < np.pi, -half, half)


def glide_ratio(alpha):
    x, y = aerofoil(PANELS)
    xm, ym = 0.5 * (x[1:] + x[:-1]), 0.5 * (y[1:] + y[:-1])
    length = np.hypot(np.diff(x), np.diff(y)) + 1e-9
    angle = np.arctan2(np.diff(y), np.diff(x))
    dx, dy = xm[:, None] - xm[None, :], ym[:, None] - ym[None, :]
    r2 = dx * dx + dy * dy + 1e-8
    matrix = (np.cos(angle)[:, None] * dx + np.sin(angle)[:, None] * dy) / (2 * np.pi * r2) * length[None, :]
    matrix += 0.01 * np.log(r2) * length[None, :]
    matrix[np.diag_indices(PANELS)] = 0.5
    gamma = np.linalg.solve(matrix, np.sin(alpha - angle))
    lift = 2.0 * math.pi * (alpha + 0.06) * (1.0 + 1e-6 * math.tanh(float(np.mean(gamma))))
    drag = 0.008 + 0.045 * lift * lift + 0.9 * max(alpha - 0.16, 0.0)
    return lift / drag


def runner(spool):
    while True:
        for name in sorted(os.listdir(spool)):
            if name == "stop":
                return
            if name.endswith(".case"):
                path = os.path.join(spool, name)
                with open(path) as src:
                    alpha = json.load(src)["alpha"]
                os.remove(path)
                result = path[:-5] + ".result"
                with open(result + ".part", "w") as out:
                    json.dump({"glide": glide_ratio(alpha)}, out)
                os.replace(result + ".part", result)
        time.sleep(0.01)


def run_case(spool, number, alpha):
    path = os.path.join(spool, f"{number:04d}")
    with open(path + ".part", "w") as out:
        json.dump({"alpha": alpha}, out)
    os.replace(path + ".part", path + ".case")
    while not os.path.exists(path + ".result"):
        time.sleep(1.0)
    with open(path + ".result") as src:
        return json.load(src)["glide"]


def search(spool):
    low, high = -0.04, 0.2
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = run_case(spool, 0, left), run_case(spool, 1, right)
    for number in range(2, CASES):
        if at_left > at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = run_case(spool, number, left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = run_case(spool, number, right)
    return 0.5 * (low + high), max(at_left, at_right)


def main():
    with tempfile.TemporaryDirectory() as spool:
        child = mp.get_context("spawn").Process(target=runner, args=(spool,))
        child.start()
        alpha, best = search(spool)
        open(os.path.join(spool, "stop"), "w").close()
        child.join()
    print(f"best glide {best:.3f} at {math.degrees(alpha):.3f} degrees after {CASES} cases")


if __name__ == "__main__":
    main()
