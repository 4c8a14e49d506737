"""Cut synthetic tissue slides into tiles, then measure the stain in each tile."""
import os
import shutil
import tempfile

import numpy as np
from PIL import Image
from scipy import ndimage

SLIDES, SIDE, TILE = 7, 2048, 512
STAINS = np.array([[0.65, 0.70, 0.29], [0.07, 0.99, 0.11], [0.27, 0.57, 0.78]])


def slide(rng):
    coarse = ndimage.zoom(rng.standard_normal((64, 64)), SIDE / 64, order=1)
    fine = ndimage.gaussian_filter(rng.standard_normal((SIDE, SIDE)).astype(np.float32), 2.0)
    haem = np.clip(0.4 + 0.25 * coarse + 2.0 * fine, 0, None)
    eosin = np.clip(0.5 - 0.15 * coarse + 1.0 * np.roll(fine, 200, 1), 0, None)
    density = haem[..., None] * STAINS[0] + eosin[..., None] * STAINS[1]
    return (255 * np.exp(-density)).astype(np.uint8)


def cut(image, folder, name):
    paths = []
    for y in range(0, SIDE, TILE):
        for x in range(0, SIDE, TILE):
            path = os.path.join(folder, f"{name}_{y}_{x}.png")
            Image.fromarray(image[y:y + TILE, x:x + TILE]).save(path, optimize=True)
            paths.append(path)
    return paths


def measure(path, unmix):
    with Image.open(path) as picture:
        rgb = np.asarray(picture, dtype=np.float32)
    density = -np.log((rgb + 1) / 256)
    stains = density.reshape(-1, 3) @ unmix
    haem = stains[:, 0].reshape(TILE, TILE)
    nuclei, count = ndimage.label(ndimage.gaussian_filter(haem, 1.5) > 0.7)
    sizes = np.bincount(nuclei.ravel())[1:]
    return haem.mean(), count, sizes.mean() if count else 0.0


def main():
    rng = np.random.default_rng(9)
    unmix = np.linalg.inv(STAINS).astype(np.float32)
    folder = tempfile.mkdtemp(prefix="tiles_")
    rows = []
    try:
        for k in range(SLIDES):
            tiles = cut(slide(rng), folder, f"slide{k}")
            rows += [measure(path, unmix) for path in tiles]
            for path in tiles:
                os.remove(path)
    finally:
        shutil.rmtree(folder)
    rows = np.array(rows)
    print("tiles", len(rows))
    print("mean haematoxylin %.4f" % rows[:, 0].mean())
    print("nuclei per tile %.2f  mean size %.2f" % (rows[:, 1].mean(), rows[:, 2].mean()))


if __name__ == "__main__":
    main()
