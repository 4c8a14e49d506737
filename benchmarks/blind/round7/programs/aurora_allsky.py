"""Merge the frames of a chain of all-sky cameras into maps of auroral brightness."""
from functools import lru_cache

import numpy as np
from scipy.ndimage import gaussian_filter, median_filter

N_CAMERAS = 150
N_FRAMES = 18
PIXELS = 128
SHELL_KM, EARTH_KM = 110.0, 6371.0
GRID = (180, 360)


def camera_site(camera):
    return 62.0 + 9.0 * np.sin(0.7 * camera), -15.0 + 0.45 * camera, 0.03 * np.cos(camera)


@lru_cache
def footprint(camera):
    """Grid cell of the emission shell that each pixel of a camera looks at; -1 outside the lens."""
    lat0, lon0, tilt = camera_site(camera)
    lat0, lon0 = np.radians(lat0), np.radians(lon0)
    y, x = np.mgrid[-1:1:PIXELS * 1j, -1:1:PIXELS * 1j]
    radius = np.hypot(x, y)
    zenith = radius * np.radians(84.0)
    azimuth = np.arctan2(x, -y) + tilt
    # refraction: a few corrections towards the true zenith angle
    for _ in range(3):
        zenith = radius * np.radians(84.0) + 0.0003 * np.tan(np.minimum(zenith, 1.4)) * np.cos(tilt * azimuth)
    sine = EARTH_KM / (EARTH_KM + SHELL_KM) * np.sin(zenith)
    arc = zenith - np.arcsin(sine)
    lat = np.arcsin(np.sin(lat0) * np.cos(arc) + np.cos(lat0) * np.sin(arc) * np.cos(azimuth))
    lon = lon0 + np.arctan2(np.sin(azimuth) * np.sin(arc) * np.cos(lat0), np.cos(arc) - np.sin(lat0) * np.sin(lat))
    row = ((np.degrees(lat) - 45.0) / 35.0 * GRID[0]).astype(int).clip(0, GRID[0] - 1)
    col = ((np.degrees(lon) + 40.0) / 120.0 * GRID[1]).astype(int).clip(0, GRID[1] - 1)
    cell = row * GRID[1] + col
    cell[radius > 1.0] = -1
    return cell.ravel()


def exposure(camera, frame, noise):
    """A raw frame: an arc that drifts, a star background and read-out noise."""
    shift = (camera * 37 + frame * 11) % 64
    base = np.roll(noise, shift * PIXELS + frame, axis=None)
    base[40 + shift // 2: 50 + shift // 2] += 60.0
    return base


def calibrate(raw):
    smooth = gaussian_filter(median_filter(raw, size=5), 1.5, truncate=2.5)
    return smooth - np.median(smooth)


def main():
    rng = np.random.default_rng(44)
    noise = rng.gamma(4.0, 5.0, (PIXELS, PIXELS))
    cells = GRID[0] * GRID[1]
    power = []
    for frame in range(N_FRAMES):
        total, weight = np.zeros(cells), np.zeros(cells)
        for camera in range(N_CAMERAS):
            cell = footprint(camera)
            bright = calibrate(exposure(camera, frame, noise)).ravel()
            seen = cell >= 0
            total += np.bincount(cell[seen], weights=bright[seen], minlength=cells)
            weight += np.bincount(cell[seen], minlength=cells)
        sky = total / np.maximum(weight, 1)
        power.append(float(sky.clip(0).sum()))
    print("frames", N_FRAMES, "cells seen", int((weight > 0).sum()))
    print("mean power %.2f  last %.2f" % (np.mean(power), power[-1]))


if __name__ == "__main__":
    main()
