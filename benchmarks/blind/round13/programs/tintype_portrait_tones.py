"""Tone statistics of scanned tintype portraits, measured on small versions of the scans."""
import os
import tempfile

import numpy as np
from PIL import Image

MASTERS = 4
SCANS = 80
WIDTH, HEIGHT = 4800, 4000
SMALL = (600, 500)


def scan_one(rng, path):
    """A dark oval portrait with vignette, scratches and grain."""
    y = np.linspace(-1, 1, HEIGHT, dtype=np.float32)[:, None]
    x = np.linspace(-1, 1, WIDTH, dtype=np.float32)[None, :]
    oval = np.exp(-((x / 0.5) ** 2 + (y / 0.7) ** 2) * 2)
    tone = 40 + 120 * oval * (0.7 + 0.3 * np.sin(6 * x * rng.uniform(0.8, 1.2) + 3 * y))
    tile = rng.normal(0, 9, (500, 600)).astype(np.float32)
    tone += np.tile(tile, (HEIGHT // 500, WIDTH // 600))
    for _ in range(30):
        row = rng.integers(0, HEIGHT - 4)
        tone[row:row + 3] += 25
    grey = np.clip(tone, 0, 255).astype(np.uint8)
    warm = np.stack([grey, (grey * 0.92).astype(np.uint8), (grey * 0.8).astype(np.uint8)], axis=-1)
    Image.fromarray(warm).save(path, quality=88)


def make_archive(folder):
    """A stand-in for the real archive; a few masters serve for all its plates."""
    rng = np.random.default_rng(1862)
    masters = []
    for k in range(MASTERS):
        path = os.path.join(folder, "master_%d.jpg" % k)
        scan_one(rng, path)
        with open(path, "rb") as file:
            masters.append(file.read())
        os.remove(path)
    paths = []
    for k in range(SCANS):
        path = os.path.join(folder, "plate_%03d.jpg" % k)
        with open(path, "wb") as file:
            file.write(masters[k % MASTERS])
        paths.append(path)
    return paths


def measure(path):
    with Image.open(path) as plate:
        small = plate.resize(SMALL, Image.Resampling.BOX)
    pixels = np.asarray(small.convert("L"), np.float32)
    contrast = np.percentile(pixels, 95) - np.percentile(pixels, 5)
    dx = np.abs(np.diff(pixels, axis=1)).mean()
    levels = np.histogram(pixels, bins=32, range=(0, 256))[0] / pixels.size
    entropy = -(levels[levels > 0] * np.log2(levels[levels > 0])).sum()
    return pixels.mean(), contrast, dx, entropy


def main():
    with tempfile.TemporaryDirectory() as folder:
        paths = make_archive(folder)
        table = np.array([measure(path) for path in paths])
    print("plates measured:", len(table))
    for name, column in zip(("tone", "contrast", "grain", "entropy"), table.T):
        print("  %-9s mean %7.2f  min %7.2f  max %7.2f" % (name, column.mean(), column.min(), column.max()))


if __name__ == "__main__":
    main()
