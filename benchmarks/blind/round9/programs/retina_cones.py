"""Cone images: blur patches of moving scenes with the eye's point spread at their eccentricity."""
from functools import lru_cache

import numpy as np
from scipy.signal import fftconvolve

RINGS = 160
FRAMES = 6
PUPIL = 256
WAVES = np.linspace(0.45, 0.65, 5)


@lru_cache(maxsize=None)
def pupil_grid():
    y, x = np.mgrid[-1:1:PUPIL * 1j, -1:1:PUPIL * 1j]
    radius = np.hypot(x, y) * 1.6
    return x, y, radius, radius <= 1.0


@lru_cache(maxsize=128)
def point_spread(eccentricity):
    """Polychromatic point spread of a model eye at this angle (degrees) from the fovea."""
    x, y, radius, inside = pupil_grid()
    defocus = 0.25 + 0.012 * eccentricity
    astigmatism = 0.0009 * eccentricity ** 2
    coma = 0.006 * eccentricity
    error = (defocus * (2 * radius ** 2 - 1) + astigmatism * (x * x - y * y)
             + coma * (3 * radius ** 3 - 2 * radius) * x)
    total = np.zeros((PUPIL, PUPIL))
    for wave in WAVES:
        field = np.where(inside, np.exp(2j * np.pi * error / wave), 0.0)
        total += np.abs(np.fft.fftshift(np.fft.fft2(field))) ** 2 / wave ** 2
    middle = PUPIL // 2
    kernel = total[middle - 20:middle + 21, middle - 20:middle + 21]
    return kernel / kernel.sum()


def scene(rng, previous):
    """A slowly changing texture with a 1/f spectrum."""
    noise = np.fft.rfft2(rng.normal(size=(512, 512)))
    fy = np.fft.fftfreq(512)[:, None]
    fx = np.fft.rfftfreq(512)[None, :]
    texture = np.fft.irfft2(noise / np.maximum(np.hypot(fx, fy), 1 / 512))
    return texture if previous is None else 0.8 * previous + 0.2 * texture


def cone_signals(image, ring):
    eccentricity = 0.25 * ring
    kernel = point_spread(eccentricity)
    angle = 2.399963 * ring
    r = int(256 + (20 + ring) * np.cos(angle))
    c = int(256 + (20 + ring) * np.sin(angle))
    patch = image[r - 64:r + 64, c - 64:c + 64]
    blurred = fftconvolve(patch, kernel, mode="valid")
    spacing = 2 + ring // 40
    return blurred[::spacing, ::spacing]


def main():
    rng = np.random.default_rng(52)
    image = None
    contrast = np.zeros((FRAMES, RINGS))
    for frame in range(FRAMES):
        image = scene(rng, image)
        for ring in range(RINGS):
            contrast[frame, ring] = cone_signals(image, ring).std()
    profile = contrast.mean(axis=0)
    print("frames:", FRAMES, "rings:", RINGS)
    print("contrast at 0, 10, 20, 40 deg:", np.round(profile[[0, 40, 80, 159]], 3))
    print("half contrast at %.2f deg" % (0.25 * int(np.argmax(profile < 0.5 * profile[0]))))


if __name__ == "__main__":
    main()
