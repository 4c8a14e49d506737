"""Leaf water content of sunflower plots from an airborne imaging spectrometer cube."""
import os
import tempfile

import h5py
import numpy as np
from scipy.signal import savgol_filter

BANDS, ROWS, COLS = 200, 400, 400
STRIP = 10


def fly(path):
    rng = np.random.default_rng(5)
    wave = np.linspace(400.0, 2400.0, BANDS)
    yy, xx = np.mgrid[0:ROWS, 0:COLS]
    water = 0.5 + 0.3 * np.sin(xx / 31.0) * np.cos(yy / 47.0)
    green = 0.5 + 0.4 * np.cos(xx / 19.0 + yy / 23.0)
    with h5py.File(path, "w") as out:
        cube = out.create_dataset("reflectance", (BANDS, ROWS, COLS), dtype="u2",
                                  chunks=(1, ROWS, COLS), compression="gzip", compression_opts=1)
        for b in range(BANDS):
            dip = np.exp(-((wave[b] - 1450.0) / 70.0) ** 2) + np.exp(-((wave[b] - 1940.0) / 90.0) ** 2)
            red = np.exp(-((wave[b] - 670.0) / 40.0) ** 2)
            plane = 5200.0 - 2600.0 * water * dip - 1800.0 * green * red
            cube[b] = (plane + rng.integers(0, 32, size=(ROWS, COLS))).astype(np.uint16)
        out["wavelength"] = wave


def band_depth(spectra, wave, left, centre, right):
    a, c, b = (int(np.argmin(np.abs(wave - w))) for w in (left, centre, right))
    weight = (wave[c] - wave[a]) / (wave[b] - wave[a])
    line = (1.0 - weight) * spectra[:, a] + weight * spectra[:, b]
    return 1.0 - spectra[:, c] / line


def unmix(spectra, members):
    coef, *_ = np.linalg.lstsq(members.T, spectra.T, rcond=None)
    return coef.T


def strips(cube):
    for top in range(0, ROWS, STRIP):
        yield top, cube[:, top:top + STRIP, :]


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "flight_0712.h5")
        fly(path)
        with h5py.File(path, "r") as src:
            wave = src["wavelength"][...]
            cube = src["reflectance"]
            members = np.stack([np.ones(BANDS),
                                np.exp(-((wave - 1450.0) / 70.0) ** 2),
                                np.exp(-((wave - 1940.0) / 90.0) ** 2),
                                np.exp(-((wave - 670.0) / 40.0) ** 2)])
            water = np.zeros((ROWS, COLS))
            chlorophyll = np.zeros((ROWS, COLS))
            share = np.zeros((ROWS, COLS, len(members)))
            for top, strip in strips(cube):
                spectra = strip.reshape(BANDS, -1).T.astype(np.float64) / 10000.0
                spectra = savgol_filter(spectra, 11, 3, axis=1)
                water[top:top + STRIP] = band_depth(spectra, wave, 1300, 1450, 1650).reshape(-1, COLS)
                chlorophyll[top:top + STRIP] = band_depth(spectra, wave, 560, 670, 760).reshape(-1, COLS)
                share[top:top + STRIP] = unmix(spectra, members).reshape(-1, COLS, len(members))
    print(f"water depth  mean {water.mean():.4f}  p95 {np.percentile(water, 95):.4f}")
    print(f"chlorophyll  mean {chlorophyll.mean():.4f}  p95 {np.percentile(chlorophyll, 95):.4f}")
    print("member shares", np.round(share.mean(axis=(0, 1)), 4))


if __name__ == "__main__":
    main()
