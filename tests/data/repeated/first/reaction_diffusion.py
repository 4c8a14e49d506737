"""
verdict: none
stack:
  simulate(Grid(n=512), steps=20000)
  grid.laplacian()
  np.fft.rfft2(self.field)
why: the field is updated in place through out= in each step
"""
import numpy as np


class Grid:
    def __init__(self, n, seed=3):
        rng = np.random.default_rng(seed)
        self.field = rng.normal(scale=0.1, size=(n, n))
        k = np.fft.fftfreq(n) * 2 * np.pi
        kr = np.fft.rfftfreq(n) * 2 * np.pi
        self.k2 = k[:, None] ** 2 + kr[None, :] ** 2
        self.scratch = np.empty_like(self.field)

    def laplacian(self):
        return np.fft.irfft2(-self.k2 * np.fft.rfft2(self.field), s=self.field.shape)


def react(u, buffer):
    np.power(u, 3, out=buffer)
    np.subtract(u, buffer, out=buffer)
    return buffer


def simulate(grid, steps, dt=0.05, diffusion=0.5):
    u = grid.field
    energy = np.empty(steps)
    for n in range(steps):
        lap = grid.laplacian()
        change = react(u, grid.scratch)
        change += diffusion * lap
        change *= dt
        np.add(u, change, out=u)
        energy[n] = (u**2).mean()
    return energy


if __name__ == "__main__":
    np.savetxt("energy.txt", simulate(Grid(n=512), steps=20000))
