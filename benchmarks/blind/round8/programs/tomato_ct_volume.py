"""Seeds and locules in a computed tomography of a tomato.

The density profile of slabs of the scan is taken at several smoothing
widths; the results of the slabs are kept in a joblib store.
"""
import tempfile

import numpy as np
from joblib import Memory
from scipy import ndimage

SHAPE = (400, 340, 340)
SLAB = 20


def scan():
    rng = np.random.default_rng(77)
    z, y, x = np.ogrid[-1:1:SHAPE[0] * 1j, -1:1:SHAPE[1] * 1j, -1:1:SHAPE[2] * 1j]
    radius = np.sqrt(z * z + y * y + x * x).astype(np.float32)
    volume = np.where(radius < 0.9, np.float32(1.0), np.float32(0.1))
    volume -= np.float32(0.4) * ((radius > 0.35) & (radius < 0.7))
    for _ in range(150):
        place = [int(v) for v in rng.integers(60, 280, 3)]
        block = tuple(slice(p, p + 6) for p in place)
        volume[block] += np.float32(0.8)
    noise = rng.standard_normal(SHAPE, dtype=np.float32)
    volume += np.float32(0.15) * noise
    return np.ascontiguousarray(volume, dtype=np.float32)


def slab_measures(volume, start, width):
    slab = volume[start:start + SLAB]
    smooth = ndimage.gaussian_filter(slab, width)
    seeds = smooth > 1.25
    labels, count = ndimage.label(seeds)
    sizes = np.bincount(labels.ravel())[1:]
    locule = float((smooth < 0.75).mean())
    return int(count), float(sizes.mean()) if count else 0.0, locule


def main():
    volume = scan()
    with tempfile.TemporaryDirectory() as folder:
        memory = Memory(folder, verbose=0)
        measures = memory.cache(slab_measures)
        for width in (1.0, 2.0):
            seeds = 0
            sizes, locules = [], []
            for start in range(0, SHAPE[0], SLAB):
                count, size, locule = measures(volume, start, width)
                seeds += count
                sizes.append(size)
                locules.append(locule)
            print(f"width {width:.1f}: {seeds} seeds of {np.mean(sizes):.1f} voxels, "
                  f"locules {100 * np.mean(locules):.2f} %")


if __name__ == "__main__":
    main()
