"""Cryo tomography: score in-plane tilts of a tomogram against a slab template."""
import multiprocessing as mp

import numpy as np
from scipy import ndimage

SHAPE = (160, 400, 320)
SLAB = 10
TILTS = 100


def simulate():
    rng = np.random.default_rng(3)
    volume = rng.standard_normal(SHAPE, dtype=np.float32)
    for z in range(0, SHAPE[0], 4):
        volume[z:z + 4] = ndimage.gaussian_filter1d(volume[z:z + 4], 2.0, axis=2)
    template = ndimage.rotate(volume[70:70 + SLAB], 6.5, axes=(1, 2), order=1, reshape=False)
    template += 0.2 * rng.standard_normal(template.shape, dtype=np.float32)
    return volume, template[:, 60:-60, 60:-60].copy()


def score(volume, template, depth, angle):
    slab = ndimage.rotate(volume[depth:depth + SLAB], angle, axes=(1, 2), order=3, reshape=False)
    slab = slab[:, 60:-60, 60:-60]
    a = slab - slab.mean()
    b = template - template.mean()
    return float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))


def candidates():
    rng = np.random.default_rng(8)
    depths = np.where(rng.random(TILTS) < 0.5, 70, rng.integers(0, SHAPE[0] - SLAB, TILTS))
    return list(zip(depths.tolist(), np.linspace(-12, 12, TILTS).round(3).tolist()))


def main():
    volume, template = simulate()
    jobs = candidates()
    with mp.Pool(2) as pool:
        pending = [pool.apply_async(score, (volume, template, depth, angle)) for depth, angle in jobs]
        scores = np.array([p.get() for p in pending])
    best = int(np.argmax(scores))
    print("tilts scored", len(scores))
    print("best angle %.3f at depth %d, score %.4f" % (jobs[best][1], jobs[best][0], scores[best]))
    print("median score %.5f" % np.median(scores))


if __name__ == "__main__":
    main()
