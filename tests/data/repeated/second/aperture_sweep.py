"""
verdict: none
stack:
  sweep(settings, "aperture", np.linspace(0.1, 0.9, 40))
  prepare(cfg)
  pupil(c)
  zernike(n, m, radius, angle)
  r ** (order - 2 * k)
why: setattr changes one field of the configuration in each iteration, so the same object gives another pupil
"""
from dataclasses import dataclass
from math import factorial

import numpy as np


@dataclass
class Settings:
    aperture: float = 0.5
    wavelength: float = 0.55
    pixels: int = 1024


def zernike(order, freq, r, phi):
    radial = np.zeros_like(r)
    for k in range((order - freq) // 2 + 1):
        top = (-1) ** k * factorial(order - k)
        bottom = factorial(k) * factorial((order + freq) // 2 - k) * factorial((order - freq) // 2 - k)
        radial += top / bottom * r ** (order - 2 * k)
    return radial * np.cos(freq * phi)


def pupil(conf):
    axis = np.linspace(-1, 1, conf.pixels) / conf.aperture
    x, y = np.meshgrid(axis, axis)
    radius, angle = np.hypot(x, y), np.arctan2(y, x)
    phase = np.zeros_like(radius)
    for n, m, weight in ((2, 0, 0.1), (3, 1, 0.05), (4, 0, 0.08), (6, 2, 0.02)):
        phase += weight * zernike(n, m, radius, angle)
    return np.where(radius <= 1, np.exp(2j * np.pi * phase / conf.wavelength), 0)


def prepare(c):
    field = np.fft.fftshift(np.fft.fft2(pupil(c)))
    intensity = np.abs(field) ** 2
    return intensity / intensity.sum()


def sweep(cfg, key, values):
    peaks = []
    for value in values:
        setattr(cfg, key, value)
        peaks.append(prepare(cfg).max())
    return np.array(peaks)


if __name__ == "__main__":
    settings = Settings()
    np.save("peaks.npy", sweep(settings, "aperture", np.linspace(0.1, 0.9, 40)))
