"""
verdict: none
stack:
  box.run(5000)
  self.half_kick()
  self.forces
  np.linalg.norm(delta, axis=-1)
why: forces is a property which depends on the positions, and drift changes them in place
"""
import numpy as np


class Box:
    def __init__(self, side, cells, dt=0.002, seed=0):
        self.side = side
        self.dt = dt
        grid = (np.arange(cells) + 0.5) * side / cells
        self._x = np.stack(np.meshgrid(grid, grid, grid), -1).reshape(-1, 3)
        self._v = np.random.default_rng(seed).standard_normal(self._x.shape)
        self._v -= self._v.mean(axis=0)

    @property
    def positions(self):
        return self._x % self.side

    @property
    def forces(self):
        where = self.positions
        delta = where[:, None, :] - where[None, :, :]
        delta -= self.side * np.round(delta / self.side)
        r = np.linalg.norm(delta, axis=-1)
        np.fill_diagonal(r, np.inf)
        r = np.where(r < 2.5, r, np.inf)
        strength = 48 * r**-14 - 24 * r**-8
        return (strength[:, :, None] * delta).sum(axis=1)

    def half_kick(self):
        self._v += 0.5 * self.dt * self.forces

    def drift(self):
        self._x += self.dt * self._v

    def run(self, steps):
        kinetic = []
        for _ in range(steps):
            self.half_kick()
            self.drift()
            self._v += 0.5 * self.dt * Box.forces.fget(self)
            kinetic.append(0.5 * float((self._v**2).sum()))
        return np.array(kinetic)


if __name__ == "__main__":
    box = Box(side=8.5, cells=8)
    kinetic = box.run(5000)
    print(2 * kinetic[1000:].mean() / (3 * 512))
