"""Find coins struck from the same die among photographs of auction catalogues."""
import shutil
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.fft import dctn

N_DIES = 16
N_LOTS = 210
WIDTH, HEIGHT = 2400, 3200
SIDE = 96


def photograph_dies(folder, rng):
    """One master photograph of each die, as the museum's camera writes it."""
    masters = []
    for die in range(N_DIES):
        relief = rng.normal(120, 45, (40, 30)).clip(0, 255).astype(np.uint8)
        light = rng.normal(0, 12, (400, 300))
        image = Image.fromarray(relief).resize((300, 400), Image.BICUBIC)
        grain = (np.asarray(image, dtype=float) + light).clip(0, 255).astype(np.uint8)
        image = Image.fromarray(grain).resize((WIDTH, HEIGHT), Image.BILINEAR)
        tinted = Image.merge("RGB", (image, image.point(lambda v: int(v * 0.9)), image.point(lambda v: int(v * 0.7))))
        path = folder / f"die_{die:02d}.jpg"
        tinted.save(path, quality=88)
        masters.append(path)
    return masters


def fill_catalogue(folder, masters, rng):
    lots = []
    for lot in range(N_LOTS):
        path = folder / f"lot_{lot:04d}.jpg"
        shutil.copy(masters[int(rng.integers(N_DIES))], path)
        lots.append(path)
    return lots


def thumbnail(path):
    with Image.open(path) as image:
        small = image.convert("L").resize((SIDE, SIDE), Image.LANCZOS)
    return np.asarray(small, dtype=np.float32)


def fingerprint(tile):
    """Signs of the low frequencies of several overlapping sectors."""
    parts = []
    for top in range(0, SIDE - 47, 16):
        for left in range(0, SIDE - 47, 16):
            sector = tile[top:top + 48, left:left + 48]
            sector = (sector - sector.mean()) / (sector.std() + 1e-6)
            low = dctn(sector, norm="ortho")[:10, :10].ravel()[1:]
            parts.append(low > np.median(low))
    return np.concatenate(parts)


def link_groups(prints):
    bits = np.array(prints, dtype=np.float32) * 2 - 1
    agree = (bits @ bits.T / bits.shape[1] + 1) / 2
    group = -np.ones(len(bits), dtype=int)
    for i in range(len(bits)):
        if group[i] < 0:
            group[(agree[i] > 0.9) & (group < 0)] = i
    return group


def main():
    rng = np.random.default_rng(21)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        masters = photograph_dies(folder, rng)
        lots = fill_catalogue(folder, masters, rng)
        prints = [fingerprint(thumbnail(path)) for path in lots]
    group = link_groups(prints)
    sizes = np.bincount(group)
    print("lots", len(lots), "dies found", int((sizes > 0).sum()))
    print("largest die group", int(sizes.max()))


if __name__ == "__main__":
    main()
