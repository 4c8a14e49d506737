"""
verdict: same
stack:
  beam.assemble()
  self.element(e)
  self.rule()
  np.polynomial.legendre.leggauss(self.order)
call: self.rule()
loop: for e in range(self.count)
why: the nodes and weights depend only on the fixed order, and are computed again for each element
"""
import numpy as np
from scipy.sparse import lil_matrix
from scipy.sparse.linalg import spsolve


class Beam:
    def __init__(self, length, count, order=400):
        self.count = count
        self.order = order
        self.nodes = np.linspace(0.0, length, count + 1)

    def stiffness(self, x):
        return 2.1e11 * 8e-6 * (1.0 + 0.3 * np.sin(7 * x) ** 2)

    def rule(self):
        return np.polynomial.legendre.leggauss(self.order)

    def element(self, index):
        a, b = self.nodes[index], self.nodes[index + 1]
        points, weights = self.rule()
        x = (a + b) / 2 + (b - a) / 2 * points
        h = b - a
        curvature = np.stack([6 * points / h**2, (3 * points - 1) / h,
                              -6 * points / h**2, (3 * points + 1) / h])
        return (curvature * (weights * self.stiffness(x) * h / 2)) @ curvature.T

    def assemble(self):
        size = 2 * (self.count + 1)
        K = lil_matrix((size, size))
        for e in range(self.count):
            dofs = np.arange(2 * e, 2 * e + 4)
            K[np.ix_(dofs, dofs)] += self.element(e)
        return K.tocsc()


if __name__ == "__main__":
    beam = Beam(length=12.0, count=3000)
    K = beam.assemble()
    load = np.zeros(K.shape[0])
    load[-2] = -1500.0
    deflection = spsolve(K[2:, 2:], load[2:])
    print("tip:", deflection[-2])
