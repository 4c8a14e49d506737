"""Growth of frost on a window pane (phase field with anisotropy); frames are kept for a kymograph."""
import os
import tempfile

import numpy as np
from PIL import Image

SIDE = 640
STEPS = 400
EVERY = 25
ZOOM = 2
DT = 1e-4
DX = 0.03


def laplacian(a):
    return (np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1) - 4.0 * a) / DX ** 2


def step(phase, heat, noise):
    gy = (np.roll(phase, -1, 0) - np.roll(phase, 1, 0)) / (2 * DX)
    gx = (np.roll(phase, -1, 1) - np.roll(phase, 1, 1)) / (2 * DX)
    wide = 0.01 * (1.0 + 0.02 * (gx * gx - gy * gy) / (gx * gx + gy * gy + 1e-9))
    drive = 0.29 * np.arctan(10.0 * (1.0 - heat))
    change = (wide * wide * laplacian(phase) + phase * (1.0 - phase) * (phase - 0.5 + drive + noise)) / 3e-4
    grown = np.clip(phase + DT * change, 0.0, 1.0)
    heat = heat + DT * laplacian(heat) + 1.6 * (grown - phase)
    return grown, heat


def picture(phase, heat, rng):
    grain = rng.integers(0, 12, size=(SIDE * ZOOM, SIDE * ZOOM), dtype=np.uint8)
    big = np.kron(phase, np.ones((ZOOM, ZOOM)))
    warm = np.kron(np.clip(heat, 0.0, 1.6), np.ones((ZOOM, ZOOM)))
    rgb = np.stack([60 + 150 * big, 80 + 140 * big, 120 + 70 * warm], axis=2)
    return Image.fromarray((rgb + grain[:, :, None]).clip(0, 255).astype(np.uint8))


def keep(image, folder, number):
    path = os.path.join(folder, f"pane_{number:04d}.png")
    image.save(path, optimize=True)
    return path


def kymograph(paths):
    lines = []
    for path in paths:
        with Image.open(path) as image:
            grey = np.asarray(image.convert("L"), dtype=np.float64)
        lines.append(grey[SIDE * ZOOM // 2].reshape(-1, ZOOM).mean(axis=1))
    return np.array(lines)


def main():
    rng = np.random.default_rng(12)
    yy, xx = np.mgrid[0:SIDE, 0:SIDE]
    phase = np.zeros((SIDE, SIDE))
    for cy, cx in rng.integers(60, SIDE - 60, size=(9, 2)):
        phase[(yy - cy) ** 2 + (xx - cx) ** 2 < 30] = 1.0
    heat = np.zeros((SIDE, SIDE))
    noise = rng.uniform(-0.02, 0.02, size=(SIDE, SIDE))
    paths, covered = [], []
    with tempfile.TemporaryDirectory() as folder:
        for n in range(STEPS):
            phase, heat = step(phase, heat, noise)
            if (n + 1) % EVERY == 0:
                paths.append(keep(picture(phase, heat, rng), folder, n + 1))
                covered.append(float(phase.mean()))
        lines = kymograph(paths)
    for i in range(0, len(covered), 6):
        print(f"step {(i + 1) * EVERY}: covered {covered[i]:.4f}")
    print(f"kymograph {lines.shape[0]} x {lines.shape[1]}, mean grey {lines.mean():.3f}")


if __name__ == "__main__":
    main()
