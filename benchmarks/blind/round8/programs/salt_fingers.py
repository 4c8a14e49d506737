"""Double-diffusive salt fingers in a periodic box (pseudo-spectral).

Temperature, salinity and vorticity on a square; restart files and a log of
the profiles are written on the way.
"""
import logging
import os
import tempfile

import numpy as np
from scipy import fft

N = 384
STEPS = 400
DT = 4e-3
SAVE_EVERY = 10

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("fingers")


class Box:
    def __init__(self):
        rng = np.random.default_rng(36)
        k = fft.fftfreq(N, 1.0 / N)
        self.kx, self.ky = np.meshgrid(k[:N // 2 + 1].copy(), k)
        self.kx[:, -1] = N // 2
        self.k2 = self.kx ** 2 + self.ky ** 2
        self.inverse = np.where(self.k2 > 0, 1.0 / np.maximum(self.k2, 1.0), 0.0)
        self.keep = (np.abs(self.kx) < N / 3) & (np.abs(self.ky) < N / 3)
        self.heat = fft.rfft2(0.01 * rng.normal(size=(N, N)))
        self.salt = fft.rfft2(0.01 * rng.normal(size=(N, N)))
        self.curl = fft.rfft2(0.01 * rng.normal(size=(N, N)))

    def real(self, spectrum):
        return fft.irfft2(spectrum, s=(N, N))

    def advect(self, u, w, field):
        gx = self.real(1j * self.kx * field)
        gz = self.real(1j * self.ky * field)
        return fft.rfft2(u * gx + w * gz)

    def step(self):
        stream = -self.curl * self.inverse
        u = self.real(1j * self.ky * stream)
        w = self.real(-1j * self.kx * stream)
        w_hat = -1j * self.kx * stream
        heat = self.heat - DT * (self.advect(u, w, self.heat) + w_hat)
        salt = self.salt - DT * (self.advect(u, w, self.salt) + w_hat)
        push = 1j * self.kx * (self.heat - 1.2 * self.salt)
        curl = self.curl - DT * (self.advect(u, w, self.curl) + push)
        self.heat = self.keep * heat / (1 + DT * 0.02 * self.k2)
        self.salt = self.keep * salt / (1 + DT * 0.004 * self.k2)
        self.curl = self.keep * curl / (1 + DT * 0.05 * self.k2)

    def profiles(self):
        heat, salt = self.real(self.heat), self.real(self.salt)
        return np.concatenate([heat.mean(axis=1), salt.mean(axis=1),
                               heat.std(axis=0), salt.std(axis=0)])


def restart_file(folder, number, box):
    np.savez_compressed(os.path.join(folder, f"restart_{number % 3}.npz"), step=number,
                        heat=box.real(box.heat), salt=box.real(box.salt), curl=box.real(box.curl))


def main():
    box = Box()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(1, STEPS + 1):
            box.step()
            if number % SAVE_EVERY == 0:
                restart_file(folder, number, box)
            log.debug(f"step {number}: {np.array2string(box.profiles(), threshold=10**6)}")
            if number % 100 == 0:
                flux = float(np.abs(box.salt).sum()) / N ** 2
                log.info("step %d: salt amplitude %.6f", number, flux)
    print(f"final spread of heat {box.real(box.heat).std():.6f}")


if __name__ == "__main__":
    main()
