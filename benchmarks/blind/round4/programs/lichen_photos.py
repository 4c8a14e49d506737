"""Lichen cover on gravestone photographs."""
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from PIL import Image
from scipy import ndimage

PHOTOS = 80
SIZE = (1800, 1350)


def take_photo(args):
    path, seed = args
    rng = np.random.default_rng(seed)
    coarse = rng.integers(40, 200, (45, 60, 3), dtype=np.uint8)
    photo = Image.fromarray(coarse).resize(SIZE, Image.Resampling.BICUBIC)
    photo.save(path, quality=88)


def cover(path):
    with Image.open(path) as photo:
        rgb = np.asarray(photo.convert("RGB"), dtype=np.float32)
    green = 2 * rgb[:, :, 1] - rgb[:, :, 0] - rgb[:, :, 2]
    local = ndimage.gaussian_filter(green, 8.0)
    around = ndimage.gaussian_filter(green, 16.0)
    mask = local - around > 1.0
    labels, n = ndimage.label(mask)
    area = np.bincount(labels.ravel())[1:]
    return float(mask.mean()), n, int(area.max()) if n else 0


def main():
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", ".")) as tmp:
        paths = [os.path.join(tmp, f"stone_{k:03d}.jpg") for k in range(PHOTOS)]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(take_photo, zip(paths, range(PHOTOS))))
            rows = np.array(list(pool.map(cover, paths)), dtype=float)
    print("photos", len(rows))
    print("cover %.5f  patches %.2f  largest %.1f" % tuple(rows.mean(axis=0)))


if __name__ == "__main__":
    main()
