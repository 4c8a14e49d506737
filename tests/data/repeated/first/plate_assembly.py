"""
verdict: same
stack:
  Plate(read_nodes("plate.msh"), order=24).assemble()
  self.element_matrix(corners)
  self.rule
  leggauss(self.order)
call: leggauss(self.order)
loop: for element, corners in enumerate(self.quads)
why: the property computes the quadrature nodes of a fixed order for each element
"""
import numpy as np
from numpy.polynomial.legendre import leggauss


def read_nodes(path):
    return np.loadtxt(path).reshape(-1, 4, 2)


class Plate:
    def __init__(self, quads, order):
        self.quads = quads
        self.order = order
        self.areas = np.zeros(len(quads))

    @property
    def rule(self):
        return leggauss(self.order)

    def element_matrix(self, xy):
        nodes, weights = self.rule
        k = np.zeros((4, 4))
        area = 0.0
        for s, ws in zip(nodes, weights):
            for t, wt in zip(nodes, weights):
                ds = 0.25 * np.array([t - 1, 1 - t, 1 + t, -1 - t])
                dt = 0.25 * np.array([s - 1, -1 - s, 1 + s, 1 - s])
                jac = np.array([ds, dt]) @ xy
                det = np.linalg.det(jac)
                grad = np.linalg.solve(jac, np.array([ds, dt]))
                k += ws * wt * det * grad.T @ grad
                area += ws * wt * det
        return k, area

    def assemble(self):
        blocks = []
        for element, corners in enumerate(self.quads):
            k, self.areas[element] = self.element_matrix(corners)
            blocks.append(k)
        return np.stack(blocks)


if __name__ == "__main__":
    np.save("stiffness.npy", Plate(read_nodes("plate.msh"), order=24).assemble())
