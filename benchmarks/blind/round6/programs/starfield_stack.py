"""Source counts and sky level for every frame of a long raw stack from a survey camera."""
import multiprocessing as mp
import os
import shutil
import tempfile

import numpy as np
from scipy import ndimage

FRAMES, SIDE = 160, 1024
SCALES = (1.2, 2.5, 5.0)


def expose(path):
    rng = np.random.default_rng(10)
    sky = rng.normal(900, 25, size=(4, SIDE, SIDE)).astype(np.float32)
    stars = np.zeros((SIDE, SIDE), dtype=np.float32)
    stars[rng.integers(0, SIDE, 900), rng.integers(0, SIDE, 900)] = rng.pareto(1.5, 900) * 3000 + 2000
    stars = ndimage.gaussian_filter(stars, 1.6)
    with open(path, "wb") as out:
        for k in range(FRAMES):
            shift = (int(k * 0.7) % SIDE, int(k * 0.3) % SIDE)
            frame = np.roll(stars, shift, axis=(0, 1)) + sky[k % 4] + 0.4 * k
            out.write(np.clip(frame, 0, 65535).astype("<u2").tobytes())


def analyse(job):
    path, k = job
    raw = np.memmap(path, dtype="<u2", mode="r", shape=(FRAMES, SIDE, SIDE))
    frame = raw[k].astype(np.float32)
    level = np.median(frame[::4, ::4])
    background = ndimage.uniform_filter(frame, 65)
    flat = frame - background
    response = np.full_like(flat, -np.inf)
    for scale in SCALES:
        smooth = ndimage.gaussian_filter(flat, scale)
        np.maximum(response, scale * (smooth - ndimage.uniform_filter(flat, int(6 * scale) | 1)), out=response)
    noise = 1.48 * np.median(np.abs(response[::4, ::4]))
    _, sources = ndimage.label(response > 8 * noise)
    return k, float(level), float(noise), sources


def main():
    folder = tempfile.mkdtemp(prefix="stack_")
    try:
        path = os.path.join(folder, "night.raw")
        expose(path)
        with mp.Pool(2) as pool:
            rows = sorted(pool.imap_unordered(analyse, [(path, k) for k in range(FRAMES)], chunksize=4))
    finally:
        shutil.rmtree(folder)
    table = np.array(rows)
    print("frames", len(table))
    print("sky level %.2f to %.2f" % (table[0, 1], table[-1, 1]))
    print("noise %.3f  sources per frame %.2f" % (table[:, 2].mean(), table[:, 3].mean()))


if __name__ == "__main__":
    main()
