"""
verdict: none
stack:
  main(sys.argv[1:])
  measure(solver, system, rhs)
  method(a, b)
  scipy.linalg.lu_factor(k)
why: the same system is solved several times on purpose, to measure the time
"""
import statistics
import sys
import time

import numpy as np
import scipy.linalg
import scipy.sparse.linalg


def by_lu(k, f):
    return scipy.linalg.lu_solve(scipy.linalg.lu_factor(k), f)


def by_cholesky(k, f):
    return scipy.linalg.cho_solve(scipy.linalg.cho_factor(k), f)


def by_cg(k, f):
    return scipy.sparse.linalg.cg(k, f)[0]


SOLVERS = {"lu": by_lu, "cholesky": by_cholesky, "cg": by_cg}


def measure(method, a, b, repeats=7):
    times = []
    for r in range(repeats):
        start = time.perf_counter()
        method(a, b)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main(sizes):
    rng = np.random.default_rng(0)
    for n in map(int, sizes):
        half = rng.normal(size=(n, n))
        system = half @ half.T + n * np.eye(n)
        rhs = rng.normal(size=n)
        for name, solver in SOLVERS.items():
            print(n, name, f"{measure(solver, system, rhs):.4f}", sep="\t")


if __name__ == "__main__":
    main(sys.argv[1:])
