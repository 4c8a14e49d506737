"""Shape descriptors of fish ear stones from simulated X-ray silhouettes, two workers."""
import multiprocessing as mp

import numpy as np
import pandas as pd
from scipy import interpolate, ndimage, optimize, stats

SIZE = 640
HARMONICS = 12


def silhouette(seed):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[-1:1:SIZE * 1j, -1:1:SIZE * 1j]
    angle = np.arctan2(y, x)
    radius = 0.55 + 0.1 * np.cos(angle - 0.3)
    for order in range(2, 9):
        radius += rng.normal(0, 0.12 / order ** 1.5) * np.cos(order * angle + rng.uniform(0, 6.28))
    body = (np.hypot(x * 0.85, y * 1.2) < radius).astype(float)
    return body + rng.normal(0, 0.35, body.shape)


def outline(image):
    smooth = ndimage.gaussian_filter(image, 3.0)
    mask = ndimage.binary_fill_holes(smooth > 0.5)
    labels, count = ndimage.label(mask)
    if count > 1:
        sizes = ndimage.sum(mask, labels, range(1, count + 1))
        mask = labels == 1 + int(np.argmax(sizes))
    cy, cx = ndimage.center_of_mass(mask)
    angles = np.linspace(0, 2 * np.pi, 720, endpoint=False)
    steps = np.arange(0, SIZE // 2)
    rows = cy + steps[None, :] * np.sin(angles)[:, None]
    cols = cx + steps[None, :] * np.cos(angles)[:, None]
    inside = ndimage.map_coordinates(mask.astype(float), [rows, cols], order=1) > 0.5
    return angles, inside.sum(axis=1).astype(float)


def describe(seed):
    angles, radius = outline(silhouette(seed))
    spline = interpolate.UnivariateSpline(angles, radius, s=len(angles) * 0.5)
    spectrum = np.abs(np.fft.rfft(spline(angles)))[1:HARMONICS + 1] / radius.mean()
    ring = lambda p: p[0] + p[1] * np.cos(angles - p[2]) - radius
    fit = optimize.least_squares(ring, [radius.mean(), 10.0, 0.0])
    rough = stats.kurtosis(radius - spline(angles))
    return [seed, *fit.x, rough, *spectrum]


def main():
    seeds = range(100, 128)
    context = mp.get_context("spawn")
    with context.Pool(2, maxtasksperchild=1) as pool:
        rows = list(pool.imap(describe, seeds, chunksize=1))
    names = ["seed", "size", "skew", "tilt", "rough"] + ["h%d" % i for i in range(1, HARMONICS + 1)]
    table = pd.DataFrame(rows, columns=names).set_index("seed")
    print("stones:", len(table))
    print("mean size: %.2f px" % table["size"].mean())
    print("variable harmonic:", table.filter(like="h").std().idxmax())
    print("roughness: %.3f" % table["rough"].median())


if __name__ == "__main__":
    main()
