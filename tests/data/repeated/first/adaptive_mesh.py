"""
verdict: none
stack:
  solve(Mesh(np.linspace(0, 1, 41)), tol=1e-6)
  stiffness(mesh)
  splu(diags([low, main, low], [-1, 0, 1], format="csc"))
why: the mesh is refined by a method, under a condition, before the next iteration
"""
import numpy as np
from scipy.sparse import diags
from scipy.sparse.linalg import splu


class Mesh:
    def __init__(self, x):
        self.x = x
        self.generation = 0

    def refine(self, marked):
        middle = (self.x[1:] + self.x[:-1]) / 2
        self.x = np.sort(np.concatenate([self.x, middle[marked]]))
        self.generation += 1


def stiffness(m):
    h = np.diff(m.x)
    main = 1 / h[:-1] + 1 / h[1:]
    low = -1 / h[1:-1]
    return splu(diags([low, main, low], [-1, 0, 1], format="csc"))


def load(x):
    h = np.diff(x)
    f = np.exp(-200 * (x[1:-1] - 0.3) ** 2)
    return f * (h[:-1] + h[1:]) / 2


def indicator(x, u):
    slope = np.diff(u) / np.diff(x)
    jump = np.abs(np.diff(slope))
    return np.maximum(np.append(jump, 0), np.append(0, jump)) * np.diff(x)


def solve(mesh, tol):
    for level in range(60):
        u = np.zeros(len(mesh.x))
        u[1:-1] = stiffness(mesh).solve(load(mesh.x))
        eta = indicator(mesh.x, u)
        if eta.max() < tol:
            return mesh.x, u
        if eta.max() > 0:
            mesh.refine(eta > 0.5 * eta.max())
    return mesh.x, u


if __name__ == "__main__":
    solve(Mesh(np.linspace(0, 1, 41)), tol=1e-6)
