"""Cut the fragments out of large papyrus scans, enhance them and write previews for the catalogue."""
import os
import tempfile

import numpy as np
from PIL import Image, ImageFilter, ImageOps

WIDTH, HEIGHT = 3800, 2800
SHEETS = 2
FRAGMENTS = 20
BOX = 320


def make_sheet(path, seed):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
    fibre = 12 * np.sin(x / 3.1) + 9 * np.sin(y / 4.3 + 0.4 * np.sin(x / 90))
    grain = rng.integers(-10, 11, (HEIGHT, WIDTH), dtype=np.int16)
    ink = np.zeros((HEIGHT, WIDTH), dtype=np.int16)
    for _ in range(6000):
        r, c = rng.integers(0, HEIGHT - 14), rng.integers(0, WIDTH - 14)
        ink[r:r + rng.integers(3, 14), c:c + rng.integers(2, 6)] = 90
    base = fibre.astype(np.int16) + grain - ink
    sheet = np.stack([190 + base, 160 + base, 110 + base], axis=-1)
    Image.fromarray(np.clip(sheet, 0, 255).astype(np.uint8)).save(path, compress_level=1)


def fragments(seed):
    rng = np.random.default_rng(seed)
    return [(int(c), int(r), int(c) + BOX, int(r) + BOX)
            for r, c in zip(rng.integers(0, HEIGHT - BOX, FRAGMENTS), rng.integers(0, WIDTH - BOX, FRAGMENTS))]


def enhance(piece):
    gray = ImageOps.autocontrast(ImageOps.grayscale(piece), cutoff=1)
    smooth = gray.filter(ImageFilter.MedianFilter(3))
    share = float((np.asarray(smooth) < 70).mean())
    return ImageOps.autocontrast(piece, cutoff=1), share


def main():
    folder = tempfile.mkdtemp(prefix="papyrus_")
    shares, bytes_out = [], 0
    for number in range(SHEETS):
        path = os.path.join(folder, "sheet_%d.png" % number)
        make_sheet(path, 70 + number)
        for k, box in enumerate(fragments(170 + number)):
            with Image.open(path) as sheet:
                piece = sheet.crop(box)
            clear, share = enhance(piece)
            shares.append(share)
            target = os.path.join(folder, "preview_%d_%02d.webp" % (number, k))
            clear.save(target, lossless=True, quality=100, method=6)
            bytes_out += os.path.getsize(target)
    print("fragments:", len(shares))
    print("inked share: %.4f +- %.4f" % (np.mean(shares), np.std(shares)))
    print("previews written: %s" % ("yes" if bytes_out > 0 else "no"))


if __name__ == "__main__":
    main()
