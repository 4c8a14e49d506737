"""Match particle images of an electron microscope with central slices of a model."""
from functools import partial
from multiprocessing import Pool

import numpy as np
from scipy.ndimage import map_coordinates

BOX = 192
N_ANGLES = 84
N_PARTICLES = 40


def build_model(rng):
    """A protein of a few hundred blobs, and its Fourier transform."""
    density = np.zeros((BOX, BOX, BOX), dtype=np.float32)
    atoms = (BOX / 2 + rng.normal(0, BOX / 10, (500, 3))).astype(int).clip(2, BOX - 3)
    np.add.at(density, tuple(atoms.T), 1.0)
    spectrum = np.fft.fftshift(np.fft.fftn(density)).astype(np.complex64)
    axis = np.arange(BOX) - BOX // 2
    damp = np.exp(-(axis / 40.0) ** 2).astype(np.float32)
    return spectrum * damp[:, None, None] * damp[None, :, None] * damp[None, None, :]


def rotation(angle):
    phi, theta = angle
    turn = np.array([[np.cos(phi), -np.sin(phi), 0], [np.sin(phi), np.cos(phi), 0], [0, 0, 1]])
    tip = np.array([[np.cos(theta), 0, np.sin(theta)], [0, 1, 0], [-np.sin(theta), 0, np.cos(theta)]])
    return turn @ tip


def central_slice(spectrum, angle):
    axis = np.arange(BOX) - BOX // 2
    u, v = np.meshgrid(axis, axis, indexing="ij")
    inside = u ** 2 + v ** 2 < (BOX // 2 - 2) ** 2
    plane = rotation(angle)[:, :2] @ np.stack([u[inside], v[inside]]) + BOX // 2
    out = np.zeros((BOX, BOX), dtype=np.complex64)
    out[inside] = (map_coordinates(spectrum.real, plane, order=1)
                   + 1j * map_coordinates(spectrum.imag, plane, order=1))
    return out


def best_match(spectrum, particles, angle):
    """Highest correlation of each particle with the slice over all shifts."""
    model = central_slice(spectrum, angle)
    model /= np.sqrt((np.abs(model) ** 2).sum())
    scores = np.empty(len(particles))
    for k, particle in enumerate(particles):
        product = np.fft.ifft2(np.fft.ifftshift(particle * np.conj(model)))
        scores[k] = product.real.max()
    return scores


def main():
    rng = np.random.default_rng(3)
    spectrum = build_model(rng)
    angles = [(2.399963 * i, np.arccos(1 - (2 * i + 1) / N_ANGLES)) for i in range(N_ANGLES)]
    truth = rng.integers(0, N_ANGLES, N_PARTICLES)
    particles = []
    for t in truth:
        clean = central_slice(spectrum, angles[t])
        scale = np.sqrt((np.abs(clean) ** 2).mean())
        noise = rng.normal(0, scale, (2, BOX, BOX))
        particles.append((clean + noise[0] + 1j * noise[1]).astype(np.complex64))
    particles = np.array(particles)

    with Pool(2) as pool:
        work = partial(best_match, spectrum, particles)
        scores = np.array(pool.map(work, angles, chunksize=1))
    found = scores.argmax(axis=0)
    print("angles", N_ANGLES, "particles", N_PARTICLES)
    print("angles found again", int((found == truth).sum()))
    print("mean best score %.3f" % (scores.max(axis=0).mean() * BOX ** 2 / np.abs(particles).mean() / BOX))


if __name__ == "__main__":
    main()
