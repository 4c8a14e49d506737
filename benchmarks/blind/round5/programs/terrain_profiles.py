"""Height profiles along survey lines over a strip of terrain tiles.

The strip is one tile wide and many tiles long.  Each survey line runs along
the whole strip at its own offset; the report gives climb and roughness for
every line.
"""
import functools
import os
import tempfile
import zlib

import numpy as np

TILES = 180
SIDE = 768
LINES = 28
FOLDER = tempfile.TemporaryDirectory()


def tile_path(number):
    return os.path.join(FOLDER.name, f"tile_{number:03d}.z")


def write_tiles(rng):
    """Heights in decimetres, packed as the survey office delivers them."""
    x = np.arange(SIDE)
    base = rng.integers(-3, 4, (SIDE, SIDE)).astype(np.int16)
    for number in range(TILES):
        along = (number * SIDE + x) / 2500.0
        height = 1500 + 900 * np.sin(along)[None, :] + 4.0 * np.abs(x - 400)[:, None]
        height = height.astype(np.int16) + np.roll(base, 17 * number, axis=1)
        with open(tile_path(number), "wb") as f:
            f.write(zlib.compress(height.tobytes(), 1))


@functools.lru_cache
def tile(number):
    with open(tile_path(number), "rb") as f:
        data = zlib.decompress(f.read())
    return np.frombuffer(data, np.int16).reshape(SIDE, SIDE)


def profile(line):
    """Heights in metres along one survey line."""
    row = 20 + line * (SIDE - 40) // LINES
    parts = []
    for number in range(TILES):
        swath = tile(number)[row - 20:row + 21]
        parts.append(np.median(swath, axis=0) / 10.0)
    return np.concatenate(parts)


def describe(heights):
    steps = np.diff(heights)
    climb = steps[steps > 0].sum()
    trend = np.convolve(heights, np.ones(101) / 101, mode="same")
    rough = np.std((heights - trend)[100:-100])
    return climb, rough


def main():
    write_tiles(np.random.default_rng(3))
    climbs, roughs = [], []
    for line in range(LINES):
        climb, rough = describe(profile(line))
        climbs.append(climb)
        roughs.append(rough)
    print(f"lines: {LINES}, length {TILES * SIDE} cells")
    print(f"climb: mean {np.mean(climbs):.1f} m, highest {np.max(climbs):.1f} m")
    print(f"roughness: {np.mean(roughs):.4f} m, roughest line {np.argmax(roughs)}")
    FOLDER.cleanup()


if __name__ == "__main__":
    main()
