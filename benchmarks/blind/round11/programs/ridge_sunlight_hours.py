"""Hours of direct sunlight on a mountain map, for solar panels and snow melt.

For each position of the sun every map cell looks along the azimuth for a
ridge that hides it; the hours are summed up over the day.
"""
import math
import sys
import time
import warnings

import numpy as np
from numba import cuda

warnings.filterwarnings("ignore")

SIZE = 3072
CELL_M = 25.0
REACH = 800
POSITIONS_PER_DAY = 40


@cuda.jit
def add_sunlight(height, hours, step_row, step_col, rise, weight):
    col, row = cuda.grid(2)
    if row >= height.shape[0] or col >= height.shape[1]:
        return
    level = height[row, col]
    r = np.float32(row)
    c = np.float32(col)
    lit = 1
    for _ in range(REACH):
        r += step_row
        c += step_col
        level += rise
        i = int(r)
        j = int(c)
        if i < 0 or j < 0 or i >= height.shape[0] or j >= height.shape[1]:
            break
        if height[i, j] > level:
            lit = 0
            break
    if lit == 1:
        hours[row, col] += weight


def mountains(rng):
    y, x = np.mgrid[0:SIZE, 0:SIZE].astype(np.float32) / SIZE
    z = np.zeros((SIZE, SIZE), np.float32)
    for k in range(1, 9):
        a, b, p = rng.uniform(-3, 3, 2).tolist() + [rng.uniform(0, 6.28)]
        z += np.abs(np.sin(k * (a * x + b * y) + p)).astype(np.float32) / k
    return (900.0 * z).astype(np.float32)


def sun_path(declination, latitude=math.radians(46.5)):
    for k in range(POSITIONS_PER_DAY):
        angle = math.radians(-75 + 150 * k / (POSITIONS_PER_DAY - 1))
        s = (math.sin(latitude) * math.sin(declination)
             + math.cos(latitude) * math.cos(declination) * math.cos(angle))
        elevation = max(math.asin(s), math.radians(3.0))
        azimuth = math.pi + math.atan2(math.sin(angle),
                                       math.cos(angle) * math.sin(latitude)
                                       - math.tan(declination) * math.cos(latitude))
        yield azimuth, elevation


def main():
    budget_s = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    rng = np.random.default_rng(12)
    height = mountains(rng)
    d_height = cuda.to_device(height)
    block = (32, 8)
    grid = (-(-SIZE // block[0]), -(-SIZE // block[1]))
    weight = np.float32(10.0 / POSITIONS_PER_DAY)

    start = time.perf_counter()
    positions, day, mean_hours = 0, 80, 0.0
    while time.perf_counter() - start < budget_s:
        declination = math.radians(23.4) * math.sin(2 * math.pi * (day - 80) / 365)
        hours = np.zeros((SIZE, SIZE), np.float32)
        for azimuth, elevation in sun_path(declination):
            step_row = np.float32(-math.cos(azimuth))
            step_col = np.float32(math.sin(azimuth))
            rise = np.float32(CELL_M * math.tan(elevation))
            add_sunlight[grid, block](d_height, hours, step_row, step_col, rise, weight)
            positions += 1
        mean_hours = float(hours.mean())
        day += 5

    print(f"done: {positions} sun positions, mean sunlight {mean_hours:.2f} h on day {day - 5}")


if __name__ == "__main__":
    main()
