"""Recover the shape of a nanocrystal from its diffraction pattern (hybrid input-output)."""
import numpy as np
from scipy import fft, ndimage

SIZE = 1024
CYCLES = 8
INNER = 120
BETA = np.float32(0.85)


def crystal(rng):
    y, x = np.mgrid[-1:1:SIZE * 1j, -1:1:SIZE * 1j]
    shape = np.ones((SIZE, SIZE), dtype=bool)
    for angle in np.arange(5) * 1.2566 + 0.2:
        shape &= x * np.cos(angle) + y * np.sin(angle) < 0.32
    density = 1.0 + 0.3 * ndimage.gaussian_filter(rng.normal(size=(SIZE, SIZE)), 12) * 30
    return np.where(shape, np.clip(density, 0.1, None), 0.0).astype(np.float32)


def forward(a):
    return fft.rfft2(a, workers=2)


def backward(a):
    return fft.irfft2(a, s=(SIZE, SIZE), workers=2, overwrite_x=True)


def project(density, magnitude):
    spectrum = forward(density)
    size = np.abs(spectrum)
    error = float(np.abs(size - magnitude).sum() / magnitude.sum())
    np.maximum(size, np.float32(1e-6), out=size)
    np.divide(magnitude, size, out=size)
    spectrum *= size
    return backward(spectrum), error


def shrink(density, width):
    smooth = ndimage.gaussian_filter(density, width, truncate=3.0)
    return smooth > 0.15 * smooth.max()


def main():
    rng = np.random.default_rng(17)
    truth = crystal(rng)
    magnitude = np.abs(forward(truth))
    auto = np.abs(fft.fftshift(fft.irfft2(magnitude ** 2, workers=2)))
    support = auto > 0.04 * auto.max()
    density = np.where(support, rng.random((SIZE, SIZE)), 0).astype(np.float32)
    width = 3.0
    for cycle in range(CYCLES):
        for _ in range(INNER):
            image, error = project(density, magnitude)
            keep = support & (image > 0)
            density -= BETA * image
            np.copyto(density, image, where=keep)
        support = shrink(np.where(keep, image, 0), width)
        width = max(1.5, 0.9 * width)
        print("cycle %d: error %.4f, support %.4f" % (cycle + 1, error, support.mean()), flush=True)
    print("true support: %.4f" % (truth > 0).mean())


if __name__ == "__main__":
    main()
