"""Track directions in the frames of a diffusion cloud chamber."""
import glob
import os
import tempfile

import numpy as np
from scipy import ndimage

FRAMES = 2000
SIDE = 48
ANGLES = np.deg2rad(np.arange(0, 180, 0.5))
COS, SIN = np.cos(ANGLES), np.sin(ANGLES)


def record(folder, rng):
    yy, xx = np.mgrid[0:SIDE, 0:SIDE]
    clock = 0
    for k in range(FRAMES):
        clock += int(rng.integers(30, 44))
        angle = rng.uniform(0, np.pi)
        offset = rng.uniform(-8, 8)
        d = (xx - SIDE / 2) * np.cos(angle) + (yy - SIDE / 2) * np.sin(angle) - offset
        frame = rng.poisson(6 + 60 * np.exp(-d * d / 3.0)).astype(np.uint8)
        np.save(os.path.join(folder, f"cam{rng.integers(1, 4)}_t{clock:09d}_f{k:05d}.npy"), frame)


def density(frame):
    clean = ndimage.median_filter(frame.astype(float), 5)
    wide = ndimage.gaussian_filter(clean, 7.0)
    return ndimage.gaussian_filter(clean, 1.2) - wide


def direction(field):
    ys, xs = np.nonzero(field > np.percentile(field, 75))
    weight = field[ys, xs]
    rho = np.outer(xs - SIDE / 2, COS) + np.outer(ys - SIDE / 2, SIN)
    cell = np.rint(rho + SIDE).astype(np.int64) + np.arange(len(ANGLES)) * 2 * SIDE
    votes = np.bincount(cell.ravel(), weights=np.repeat(weight, len(ANGLES)),
                        minlength=2 * SIDE * len(ANGLES))
    votes = votes.reshape(len(ANGLES), 2 * SIDE)
    a, r = np.unravel_index(votes.argmax(), votes.shape)
    return ANGLES[a], r - SIDE, votes.max()


def main():
    rng = np.random.default_rng(1911)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR", ".")) as tmp:
        frames = os.path.join(tmp, "frames")
        fields = os.path.join(tmp, "fields")
        os.mkdir(frames)
        os.mkdir(fields)
        record(frames, rng)
        for k in range(FRAMES):
            path = glob.glob(os.path.join(frames, f"*_f{k:05d}.npy"))[0]
            np.savetxt(os.path.join(fields, f"field_{k:05d}.txt"), density(np.load(path)))
        tracks = []
        for k in range(FRAMES):
            field = np.loadtxt(os.path.join(fields, f"field_{k:05d}.txt"))
            tracks.append(direction(field))
    tracks = np.array(tracks)
    print("frames", len(tracks))
    print("mean angle %.4f rad  mean offset %.4f  strength %.4f" % tuple(tracks.mean(axis=0)))


if __name__ == "__main__":
    main()
