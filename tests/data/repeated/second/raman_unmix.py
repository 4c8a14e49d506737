"""
verdict: same
stack:
  unmix(cube, axis)
  fit_pixel(cube[row, col], wavenumber)
  references(shift)
  voigt_profile(grid - centre, sigma, gamma)
call: references(shift)
loop: for row in range(cube.shape[0]) | for col in range(cube.shape[1])
why: the reference spectra depend only on the wavenumber axis and the constant peak table, so each pixel computes the same matrix
"""
import numpy as np
from scipy.optimize import nnls
from scipy.special import voigt_profile

PEAKS = {
    "calcite": [(1086.0, 3.0, 1.5, 1.0), (712.0, 3.5, 1.5, 0.3), (282.0, 6.0, 3.0, 0.5)],
    "quartz": [(464.0, 4.0, 2.0, 1.0), (206.0, 9.0, 4.0, 0.4)],
    "graphite": [(1350.0, 20.0, 15.0, 0.6), (1582.0, 12.0, 10.0, 1.0)],
}


def references(grid):
    columns = []
    for mineral in sorted(PEAKS):
        total = np.zeros_like(grid)
        for centre, sigma, gamma, height in PEAKS[mineral]:
            total += height * voigt_profile(grid - centre, sigma, gamma)
        columns.append(total / total.max())
    return np.stack(columns, axis=1)


def fit_pixel(spectrum, shift):
    design = references(shift)
    baseline = np.percentile(spectrum, 5)
    amounts, residual = nnls(design, np.clip(spectrum - baseline, 0, None))
    return amounts, residual


def unmix(cube, wavenumber):
    maps = np.zeros(cube.shape[:2] + (len(PEAKS),))
    for row in range(cube.shape[0]):
        for col in range(cube.shape[1]):
            maps[row, col], _ = fit_pixel(cube[row, col], wavenumber)
    return maps


if __name__ == "__main__":
    cube = np.load("raman_cube.npy")
    axis = np.linspace(150, 1800, cube.shape[2])
    np.save("minerals.npy", unmix(cube, axis))
