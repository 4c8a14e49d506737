"""Prepare photographs of murals for print.

Each photograph is straightened, cut to the format of the print, sharpened
after scaling and stored as a new JPEG.  Two threads share the work; the
imaging library does its work outside the interpreter.
"""
import concurrent.futures as cf
import hashlib
import io
import os
import tempfile

import numpy as np
from PIL import Image, ImageFilter

PHOTOS = 72
WIDTH, HEIGHT = 3600, 2400
PRINT = (2700, 1800)


def make_photo(seed):
    """A picture with fields of colour, brush grain and some lines."""
    rng = np.random.default_rng(seed)
    fields = Image.fromarray(rng.integers(40, 190, (16, 24, 3), dtype=np.uint8))
    base = np.asarray(fields.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC))
    grain = rng.integers(0, 24, (HEIGHT, WIDTH, 1), dtype=np.uint8)
    picture = base + grain
    picture[::190] = 25
    out = io.BytesIO()
    Image.fromarray(picture).save(out, "JPEG", quality=90)
    return out.getvalue()


def write_photos(folder):
    originals = [make_photo(seed) for seed in range(4)]
    for k in range(PHOTOS):
        with open(os.path.join(folder, f"mural_{k:03d}.jpg"), "wb") as f:
            f.write(originals[k % len(originals)])


def prepare(path, number):
    """Make the print version of one photograph."""
    with Image.open(path) as photo:
        photo.load()
        turned = photo.rotate(0.4 + 0.05 * (number % 9),
                              resample=Image.Resampling.BICUBIC)
    cut = turned.crop((60, 60, WIDTH - 60, HEIGHT - 60))
    scaled = cut.resize(PRINT, Image.Resampling.LANCZOS)
    sharp = scaled.filter(ImageFilter.SHARPEN)
    target = path.replace("mural_", "print_")
    sharp.save(target, "JPEG", quality=92)
    with open(target, "rb") as f:
        digest = hashlib.md5(f.read()).hexdigest()
    return os.path.getsize(target), digest


def main():
    with tempfile.TemporaryDirectory() as folder:
        write_photos(folder)
        paths = [os.path.join(folder, f"mural_{k:03d}.jpg") for k in range(PHOTOS)]
        with cf.ThreadPoolExecutor(2) as pool:
            done = list(pool.map(prepare, paths, range(PHOTOS)))
    sizes = [size for size, _ in done]
    print(f"prints: {len(done)}, {PRINT[0]} x {PRINT[1]}")
    print(f"mean size: {sum(sizes) / len(sizes) / 1e6:.3f} MB")
    print(f"different prints: {len({digest for _, digest in done})}")


if __name__ == "__main__":
    main()
