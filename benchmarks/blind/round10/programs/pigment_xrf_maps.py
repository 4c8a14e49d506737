"""Element maps of a painting from a scanned X-ray fluorescence cube."""
import os
import tempfile

import h5py
import numpy as np
from scipy import ndimage

ROWS, COLS, CHANNELS = 160, 200, 1024
ELEMENTS = {"S": 92, "K": 132, "Ca": 148, "Ti": 180, "Cr": 216, "Mn": 236, "Fe": 256,
            "Co": 277, "Ni": 299, "Cu": 322, "Zn": 345, "As": 421, "Se": 449, "Br": 477,
            "Sr": 566, "Cd": 925, "Sn": 1001, "Hg": 399, "Pb": 422, "Au": 388}


def scan(path):
    rng = np.random.default_rng(1665)
    channel = np.arange(CHANNELS)
    peaks = np.stack([np.exp(-0.5 * ((channel - c) / 5.0) ** 2) for c in ELEMENTS.values()])
    base = 1.5 * np.exp(-channel / 400.0) + 0.2
    coarse = rng.random((len(ELEMENTS), 11, 11))
    fields = np.stack([ndimage.zoom(c, (ROWS / 11, COLS / 11), order=1) for c in coarse])
    with h5py.File(path, "w") as f:
        counts = f.create_dataset("counts", (ROWS, COLS, CHANNELS), dtype="u2",
                                  chunks=(8, 50, CHANNELS), compression="gzip",
                                  compression_opts=2)
        for y in range(0, ROWS, 8):
            expected = base + np.einsum("eyx,ec->yxc", 4 * fields[:, y:y + 8], peaks)
            counts[y:y + 8] = rng.poisson(expected)
        f["counts"].attrs["live_time"] = 0.05


def window_sum(cube, low, high):
    return cube[:, :, low:high].sum(axis=2, dtype=np.int64)


def net_map(cube, centre):
    line = window_sum(cube, centre - 10, centre + 11)
    left = window_sum(cube, centre - 28, centre - 18)
    return line, line - 2.1 * left


def uncertainty(line, rng, rounds=40):
    total = np.zeros(line.shape)
    square = np.zeros(line.shape)
    for _ in range(rounds):
        draw = ndimage.gaussian_filter(rng.poisson(line).astype(float), 1.0)
        total += draw
        square += draw * draw
    return np.sqrt(np.maximum(square / rounds - (total / rounds) ** 2, 0.0))


def main():
    rng = np.random.default_rng(3)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "scan.h5")
        scan(path)
        maps = {}
        with h5py.File(path, "r") as f:
            cube = f["counts"]
            for name, centre in ELEMENTS.items():
                line, net = net_map(cube, centre)
                error = uncertainty(line, rng)
                maps[name] = ndimage.median_filter(net / np.maximum(error, 1.0), size=5)
    stack = np.stack([m.ravel() for m in maps.values()])
    corr = np.corrcoef(stack)
    np.fill_diagonal(corr, 0.0)
    i, j = np.unravel_index(corr.argmax(), corr.shape)
    names = list(maps)
    print(f"{len(names)} maps of {ROWS} x {COLS} pixels")
    print(f"most alike: {names[i]} and {names[j]} ({corr[i, j]:.3f})")
    print(f"iron, mean signal to noise {maps['Fe'].mean():.2f}")


if __name__ == "__main__":
    main()
