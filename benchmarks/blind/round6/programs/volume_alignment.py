"""Rigid alignment of two confocal volumes by a coarse search over shifts."""
import itertools
import os
import shutil
import tempfile

import joblib
import numpy as np
from scipy import ndimage

SIDE = 236
TRUE_SHIFT = (6.0, -4.0, 9.0)
ANGLES = (-2.0, 0.0, 2.0)


def volumes():
    rng = np.random.default_rng(23)
    reference = np.zeros((SIDE, SIDE, SIDE), dtype=np.float32)
    for _ in range(900):
        z, y, x = rng.integers(8, SIDE - 8, 3)
        reference[z - 3:z + 3, y - 3:y + 3, x - 3:x + 3] += rng.random()
    reference = ndimage.uniform_filter(reference, 5)
    moving = np.roll(reference, [int(-s) for s in TRUE_SHIFT], axis=(0, 1, 2))
    moving += 0.02 * rng.standard_normal(moving.shape, dtype=np.float32)
    return reference, moving


def similarity(reference, moving, shift, angle):
    dz, dy, dx = shift
    a = reference[40:-40:2, 40:-40:2, 40:-40:2]
    b = moving[40 - dz:SIDE - 40 - dz:2, 40 - dy:SIDE - 40 - dy:2, 40 - dx:SIDE - 40 - dx:2]
    if angle:
        b = ndimage.rotate(b, angle, axes=(1, 2), order=1, reshape=False)
    a = a - a.mean()
    b = b - b.mean()
    ncc = float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))
    counts, _, _ = np.histogram2d(a.ravel(), b.ravel(), bins=32)
    p = counts / counts.sum()
    independent = p.sum(axis=1, keepdims=True) * p.sum(axis=0, keepdims=True)
    seen = p > 0
    return ncc, float((p[seen] * np.log(p[seen] / independent[seen])).sum())


def main():
    folder = tempfile.mkdtemp(prefix="alignment_")
    memory = joblib.Memory(os.path.join(folder, "cache"), verbose=0)
    score = memory.cache(similarity)
    try:
        reference, moving = volumes()
        table = {}
        for shift in itertools.product((-6, 0, 6), (-4, 0, 4), (0, 5, 9)):
            for angle in ANGLES:
                table[shift, angle] = score(reference, moving, shift, angle)
        best = max(table, key=lambda key: table[key][1])
        for step in range(-2, 3):
            shift = (best[0][0] + step, best[0][1], best[0][2])
            table[shift, 0.5] = score(reference, moving, shift, 0.5)
        print("positions", len(table))
        print("best shift", best[0], "angle", best[1])
        print("ncc %.4f  mutual information %.4f" % table[best])
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
