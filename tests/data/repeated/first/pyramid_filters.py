"""
verdict: none
stack:
  describe("leaf.png", settings=Settings())
  level_features(image, settings, level)
  bank(settings.scale(level), settings)
  gabor_kernel(frequency, theta=angle, bandwidth=cfg.bandwidth)
why: the frequency of the filters depends on the level through two functions
"""
from dataclasses import dataclass

import numpy as np
from scipy.signal import fftconvolve
from skimage.filters import gabor_kernel
from skimage.io import imread


@dataclass
class Settings:
    base: float = 0.4
    ratio: float = 0.7
    bandwidth: float = 1.0
    angles: int = 12
    levels: int = 8

    def scale(self, k):
        return self.base * self.ratio**k


def bank(frequency, cfg):
    kernels = []
    for angle in np.arange(cfg.angles) * np.pi / cfg.angles:
        kernels.append(gabor_kernel(frequency, theta=angle, bandwidth=cfg.bandwidth))
    return kernels


def level_features(img, settings, level):
    responses = []
    for kernel in bank(settings.scale(level), settings):
        response = np.abs(fftconvolve(img, kernel, mode="same"))
        responses.append(response.mean())
    return np.array(responses)


def describe(path, settings):
    image = imread(path, as_gray=True)
    rows = []
    for level in range(settings.levels):
        rows.append(level_features(image, settings, level))
    return np.vstack(rows)


if __name__ == "__main__":
    np.savetxt("leaf.txt", describe("leaf.png", settings=Settings()))
