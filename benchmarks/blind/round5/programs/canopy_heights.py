"""Canopy height from laser returns, tile by tile.

The flight strip is cut into tiles.  Every tile is gridded, the ground is
estimated with a running minimum, and the height above ground is summarised.
"""
import os
import tempfile

import numpy as np
from joblib import Memory
from scipy import ndimage

TILES = 30
SIDE = 2000
WORK = tempfile.TemporaryDirectory()
memory = Memory(os.path.join(WORK.name, "cache"), compress=True, verbose=0)


def read_tile(number):
    """Surface model of one tile in metres."""
    rng = np.random.default_rng(500 + number)
    surface = rng.random((SIDE, SIDE), dtype=np.float32)
    surface *= 18.0 + number % 7
    ramp = np.linspace(0, 40 + number, SIDE, dtype=np.float32)
    return surface + ramp[:, None] + 0.5 * ramp[None, :]


@memory.cache
def height_above_ground(surface, window):
    """Subtract a smoothed running minimum from the surface."""
    ground = ndimage.minimum_filter(surface, size=window)
    ground = ndimage.uniform_filter(ground, size=window)
    height = surface - ground
    np.maximum(height, 0.0, out=height)
    return height


def summary(height):
    cells = height.reshape(SIDE // 20, 20, SIDE // 20, 20)
    tops = cells.max(axis=(1, 3))
    cover = (cells > 5.0).mean(axis=(1, 3))
    return float(tops.mean()), float(np.percentile(tops, 95)), float(cover.mean())


def main():
    table = []
    for number in range(TILES):
        surface = read_tile(number)
        height = height_above_ground(surface, 25)
        table.append(summary(height))
    table = np.array(table)
    print(f"tiles: {TILES}")
    print(f"mean top height: {table[:, 0].mean():.3f} m")
    print(f"highest 95th percentile: {table[:, 1].max():.3f} m")
    print(f"cover above 5 m: {table[:, 2].mean():.4f}")
    WORK.cleanup()


if __name__ == "__main__":
    main()
