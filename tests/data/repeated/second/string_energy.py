"""
verdict: none
stack:
  vibrate(u0, 20000)
  bending_energy(u, stiffness)
  np.fft.rfft(shape)
why: u and velocity are overwritten with out= in each step, although the names are never bound again
"""
import numpy as np

N = 2048
DX = 1.0 / N
DT = 2e-6


def bending_energy(shape, modulus):
    modes = np.fft.rfft(shape)
    k = 2 * np.pi * np.fft.rfftfreq(len(shape), DX)
    return 0.5 * modulus * float(np.sum(k**4 * np.abs(modes) ** 2)) / len(shape)


def acceleration(shape, buffer):
    np.subtract(np.roll(shape, 1), 2 * shape, out=buffer)
    buffer += np.roll(shape, -1)
    np.multiply(buffer, 1.0 / DX**2, out=buffer)


def vibrate(start, steps, stiffness=1e-6):
    u = start.copy()
    velocity = np.zeros_like(u)
    scratch = np.empty_like(u)
    energies = np.empty(steps)
    for step in range(steps):
        acceleration(u, scratch)
        np.add(velocity, DT * scratch, out=velocity)
        np.add(u, DT * velocity, out=u)
        energies[step] = bending_energy(u, stiffness)
    return energies


if __name__ == "__main__":
    x = np.arange(N) * DX
    u0 = np.exp(-((x - 0.2) ** 2) / 2e-4)
    energies = vibrate(u0, 20000)
    print("drift", energies[-1] / energies[0])
