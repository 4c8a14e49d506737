"""Sizes and colours of the stones of pebble mosaics.

The stones are separated by a threshold, measured one by one, and a coloured
control picture is written for each mosaic; a stamp of it goes to the index.
"""
import os
import tempfile

import numpy as np
from PIL import Image
from scipy import ndimage

SIDE = 1300
MOSAICS = 7


def mosaic(number):
    rng = np.random.default_rng(300 + number)
    height = ndimage.gaussian_filter(rng.normal(size=(SIDE, SIDE)), 9.0)
    height /= height.std()
    tint = rng.normal(size=(SIDE // 25, SIDE // 25, 3)).repeat(25, axis=0).repeat(25, axis=1)
    tint = 128 + 50 * tint / tint.std() + 6 * rng.normal(size=tint.shape)
    return height, np.clip(tint, 0, 255).astype(np.uint8)


def measure(labels, count, colour):
    grey = colour.mean(axis=2)
    stones = []
    for k in range(1, count + 1):
        inside = labels == k
        area = int(inside.sum())
        if area < 30:
            continue
        rows, cols = np.nonzero(inside)
        length = 4 * max(rows.std(), cols.std())
        stones.append((area, length, float(grey[inside].mean())))
    return np.array(stones)


def control_picture(labels, colour, path):
    edge = ndimage.grey_dilation(labels, size=3) != labels
    picture = colour.copy()
    picture[edge] = (220, 30, 30)
    Image.fromarray(picture).save(path, optimize=True)


def index_stamp(path):
    with Image.open(path) as picture:
        return np.asarray(picture.resize((64, 64), Image.Resampling.BOX)).mean(axis=(0, 1))


def main():
    with tempfile.TemporaryDirectory() as folder:
        for number in range(MOSAICS):
            height, colour = mosaic(number)
            labels, count = ndimage.label(height > 0.35)
            stones = measure(labels, count, colour)
            path = os.path.join(folder, f"mosaic_{number}.png")
            control_picture(labels, colour, path)
            red, green, blue = index_stamp(path)
            print(f"mosaic {number}: {len(stones)} stones, mean area {stones[:, 0].mean():.1f}, "
                  f"length {stones[:, 1].mean():.2f}, grey {stones[:, 2].mean():.1f}, "
                  f"stamp {red:.0f} {green:.0f} {blue:.0f}")


if __name__ == "__main__":
    main()
