"""
verdict: none
stack:
  main(read_expression("expression.tsv"), count=40)
  decomposition.leading()
  power_iteration(self.c)
  matrix @ v
why: the matrix of the object is deflated in place through another name after each component, and in the inner while loop the vector changes
"""
import numpy as np
import pandas as pd


def read_expression(path):
    table = pd.read_csv(path, sep="\t", index_col=0)
    x = np.log2(table.to_numpy(float).T + 1)
    return x - x.mean(axis=0)


def power_iteration(matrix, tol=1e-9):
    v = np.ones(len(matrix)) / np.sqrt(len(matrix))
    change = 1.0
    while change > tol:
        w = matrix @ v
        w /= np.linalg.norm(w)
        change = 1 - abs(w @ v)
        v = w
    return v


class Decomposition:
    def __init__(self, x):
        self.c = x.T @ x / (len(x) - 1)
        self.values = []

    def leading(self):
        v = power_iteration(self.c)
        self.values.append(float(v @ self.c.dot(v)))
        return v


def remove(covariance, v, value):
    covariance -= value * np.outer(v, v)


def main(x, count):
    decomposition = Decomposition(x)
    c = decomposition.c
    vectors = []
    for k in range(count):
        v = decomposition.leading()
        vectors.append(v)
        remove(c, v, decomposition.values[-1])
    return np.array(vectors), decomposition.values


if __name__ == "__main__":
    main(read_expression("expression.tsv"), count=40)
