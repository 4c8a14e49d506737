"""Sizes of hailstones from the dents in foam pads.

Volunteers send photographs.  Pads are photographed upright with the long
side vertical; all other pictures (gardens, cars, clouds) are landscape and
are left out.  On each pad the dents are found and measured.
"""
import io
import os
import tempfile

import numpy as np
from PIL import Image
from scipy import ndimage

PADS = 20
OTHERS = 130
LONG, SHORT = 2400, 1800
DENTS = 60


def encode(gray):
    rgb = np.repeat(np.clip(gray, 0, 255).astype(np.uint8)[:, :, None], 3, axis=2)
    rgb[:, :, 0] = np.minimum(rgb[:, :, 0].astype(int) + 12, 255)
    out = io.BytesIO()
    Image.fromarray(rgb).save(out, "JPEG", quality=88)
    return out.getvalue()


def pad_picture(rng, grain):
    """A pale pad with round dark dents."""
    gray = 205.0 + np.roll(grain, rng.integers(0, SHORT), axis=1)
    for _ in range(DENTS):
        r = rng.uniform(9, 38)
        cy, cx = rng.uniform(60, LONG - 60), rng.uniform(60, SHORT - 60)
        y0, x0 = int(cy - 45), int(cx - 45)
        y, x = np.mgrid[y0:y0 + 90, x0:x0 + 90]
        inside = np.hypot(y - cy, x - cx) < r
        gray[y0:y0 + 90, x0:x0 + 90][inside] = 95.0
    return encode(gray)


def write_pictures(folder, rng):
    grain = rng.normal(0, 7, (LONG, SHORT)).astype(np.float32)
    views = [encode(110 + 9 * k + 3 * grain.T) for k in range(5)]
    kinds = ["pad"] * PADS + ["other"] * OTHERS
    rng.shuffle(kinds)
    for i, kind in enumerate(kinds):
        data = pad_picture(rng, grain) if kind == "pad" else views[i % len(views)]
        with open(os.path.join(folder, f"upload_{i:04d}.jpg"), "wb") as f:
            f.write(data)


def is_pad(path):
    height, width = np.asarray(Image.open(path)).shape[:2]
    return height > width


def dents(path):
    """Area, darkness and elongation of the dents on one pad."""
    image = np.asarray(Image.open(path).convert("L"), dtype=np.float32)
    smooth = ndimage.gaussian_filter(image, 2.0)
    labels, count = ndimage.label(smooth < 150)
    found = []
    for k in range(1, count + 1):
        mask = labels == k
        area = int(np.count_nonzero(mask))
        if area < 100:
            continue
        y, x = np.nonzero(mask)
        darkness = float(image[mask].mean(dtype=np.float64))
        stretch = float((y.max() - y.min() + 1) / (x.max() - x.min() + 1))
        found.append((area, darkness, stretch))
    return found


def main():
    rng = np.random.default_rng(2013)
    with tempfile.TemporaryDirectory() as folder:
        write_pictures(folder, rng)
        paths = sorted(os.path.join(folder, n) for n in os.listdir(folder))
        pads = [p for p in paths if is_pad(p)]
        table = []
        for path in pads:
            table.extend(dents(path))
    area, darkness, stretch = np.array(table).T
    size = 2 * np.sqrt(area / np.pi) * 0.4
    print(f"pictures: {len(paths)}, pads: {len(pads)}, dents: {len(table)}")
    print(f"hailstones: median {np.median(size):.2f} mm, largest {size.max():.2f} mm")
    print(f"darkness {darkness.mean():.3f}, elongation {np.median(stretch):.4f}")


if __name__ == "__main__":
    main()
