"""
verdict: set
stack:
  crystal.converge()
  self.density(potential)
  self.kinetic(k)
  np.exp(1j * self.phase_grid @ (q + g))
call: self.kinetic(k)
loop: while change > self.tol
why: the kinetic part of a k point does not depend on the density, and each self-consistency step goes through the same k points
"""
import numpy as np


class Crystal:
    def __init__(self, kpoints, cutoff=12, tol=1e-7):
        self.kpoints = kpoints
        self.tol = tol
        axis = np.arange(-cutoff, cutoff + 1)
        self.vectors = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
        self.phase_grid = np.linspace(0, 2 * np.pi, 400)[:, None] * np.ones(2)

    def kinetic(self, q):
        columns = []
        for g in self.vectors:
            wave = np.exp(1j * self.phase_grid @ (q + g))
            gradient = np.gradient(wave)
            columns.append(np.vdot(gradient, gradient).real)
        return np.diag(columns)

    def density(self, v):
        rho = np.zeros(len(self.vectors))
        for k in self.kpoints:
            H = self.kinetic(k) + np.diag(v)
            energies, states = np.linalg.eigh(H)
            rho += (np.abs(states[:, :4]) ** 2).sum(axis=1)
        return rho / len(self.kpoints)

    def converge(self, mix=0.3):
        potential = -1.0 / (1.0 + (self.vectors**2).sum(axis=1))
        change = np.inf
        while change > self.tol:
            rho = self.density(potential)
            updated = (1 - mix) * potential + mix * (rho - 1.0)
            change = np.abs(updated - potential).max()
            potential = updated
        return potential


if __name__ == "__main__":
    line = np.linspace(0.0, 0.5, 20)
    crystal = Crystal(np.stack([line, line], axis=1))
    np.save("potential.npy", crystal.converge())
