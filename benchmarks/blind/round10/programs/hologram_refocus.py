"""Refocuses digital in-line holograms of pollen grains at a range of depths."""
import numpy as np
from scipy import fft, ndimage

SIZE = 1024
PIXEL = 3.45e-6
WAVELENGTH = 632.8e-9
DEPTHS = np.linspace(0.018, 0.030, 6)
FRAMES = 6
REAL = np.longdouble
COMPLEX = np.clongdouble


def grains(frame):
    rng = np.random.default_rng(600 + frame)
    plane = np.zeros((SIZE, SIZE))
    for y, x in rng.integers(80, SIZE - 80, (40, 2)):
        plane[y, x] = 1.0
    shade = ndimage.gaussian_filter(plane, 4.0)
    return 1.0 - 0.8 * shade / shade.max()


def spatial_frequencies():
    f = fft.fftfreq(SIZE, PIXEL).astype(REAL)
    return f[:, None] ** 2 + f[None, :] ** 2


def kernel(square, depth):
    inside = np.maximum(1.0 / REAL(WAVELENGTH) ** 2 - square, 0.0)
    phase = 2 * REAL(np.pi) * REAL(depth) * np.sqrt(inside)
    return (np.cos(phase) + 1j * np.sin(phase)).astype(COMPLEX)


def record(frame, square):
    field = fft.fft2(grains(frame).astype(COMPLEX))
    hologram = np.abs(fft.ifft2(field * kernel(square, DEPTHS[frame % len(DEPTHS)]))) ** 2
    noise = np.random.default_rng(frame).normal(0.0, 0.01, hologram.shape)
    return (hologram + noise).astype(np.float64)


def sharpness(amplitude):
    dy, dx = np.gradient(amplitude)
    return float((dy * dy + dx * dx).mean())


def refocus(hologram, square):
    spectrum = fft.fft2(hologram.astype(COMPLEX))
    scores = []
    for depth in DEPTHS:
        back = np.conj(kernel(square, depth))
        field = fft.ifft2(spectrum * back)
        scores.append(sharpness(np.abs(field).astype(np.float32)))
    return np.array(scores)


def main():
    square = spatial_frequencies()
    table = []
    for frame in range(FRAMES):
        hologram = record(frame, square)
        table.append(refocus(hologram, square))
    table = np.array(table)
    found = table.argmax(axis=1)
    print(f"{FRAMES} holograms of {SIZE} x {SIZE}, {len(DEPTHS)} depths")
    print("depths in focus (mm): " + " ".join(f"{1000 * DEPTHS[k]:.1f}" for k in found))
    print(f"mean sharpness {table.mean():.4e}")


if __name__ == "__main__":
    main()
