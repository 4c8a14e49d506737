"""Phase separation in a gel: Cahn-Hilliard equation, semi-implicit spectral scheme."""
import os
import tempfile

import numpy as np
from scipy import fft

SIZE = 512
STEPS = 420
DT = 0.1
SHELLS = 120
REPORT = 60


def wave_numbers():
    ky = fft.fftfreq(SIZE, 1.0 / SIZE) * 2 * np.pi / 256.0
    kx = fft.rfftfreq(SIZE, 1.0 / SIZE) * 2 * np.pi / 256.0
    return ky[:, None] ** 2 + kx[None, :] ** 2


def start(seed):
    rng = np.random.default_rng(seed)
    return 0.05 + 0.02 * rng.standard_normal((SIZE, SIZE))


def structure_factor(spectrum, k2):
    power = np.abs(spectrum) ** 2
    k = np.sqrt(k2)
    edges = np.linspace(0.05, k.max(), SHELLS + 1)
    shells = np.zeros(SHELLS)
    for s in range(SHELLS):
        ring = (k >= edges[s]) & (k < edges[s + 1])
        if ring.any():
            shells[s] = power[ring].mean()
    middle = 0.5 * (edges[:-1] + edges[1:])
    return (middle * shells).sum() / shells.sum()


def free_energy(c, spectrum, k2):
    bulk = 0.25 * (c * c - 1.0) ** 2
    gradient = fft.irfft2(np.sqrt(k2) * spectrum, s=c.shape)
    return float(bulk.mean() + 0.5 * (gradient ** 2).mean())


def run(folder):
    k2 = wave_numbers()
    damping = 1.0 / (1.0 + DT * (k2 * k2 + 2.0 * k2))
    c = start(19)
    spectrum = fft.rfft2(c)
    history = []
    for step in range(1, STEPS + 1):
        cubic = fft.rfft2(c * c * c - 3.0 * c)
        spectrum = (spectrum - DT * k2 * cubic) * damping
        c = fft.irfft2(spectrum, s=c.shape)
        scale = structure_factor(spectrum, k2)
        if step % REPORT == 0:
            history.append((step, scale, free_energy(c, spectrum, k2)))
        if step % 10 == 0:
            np.savez_compressed(os.path.join(folder, "restart.npz"), c=c,
                                spectrum=spectrum, step=step)
    return c, history


def main():
    with tempfile.TemporaryDirectory() as folder:
        c, history = run(folder)
        size = os.path.getsize(os.path.join(folder, "restart.npz"))
    print(f"{SIZE} x {SIZE}, {STEPS} steps, restart file {'kept' if size else 'empty'}")
    for step, scale, energy in history:
        print(f"step {step}: mean wave number {scale:.4f}, free energy {energy:.5f}")
    print(f"fraction of the dense phase {(c > 0).mean():.4f}")


if __name__ == "__main__":
    main()
