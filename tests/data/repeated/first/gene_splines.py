"""
verdict: same
stack:
  main(arguments())
  bootstrap_peak(counts[gene].to_numpy(), hours, args, rng)
  basis(args.points, args.knots, degree=3)
  [BSpline(t, np.eye(n)[k], degree)(grid) for k in range(n)]
  BSpline(t, np.eye(n)[k], degree)(grid)
call: basis(args.points, args.knots, degree=3)
loop: for gene in counts.columns | for b in range(args.boot)
why: the spline basis depends on two command-line options only; the random resampling touches the data but not the basis
"""
import argparse

import numpy as np
import pandas as pd
from scipy.interpolate import BSpline


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("table")
    p.add_argument("--points", type=int, default=2000)
    p.add_argument("--knots", type=int, default=40)
    p.add_argument("--boot", type=int, default=200)
    return p.parse_args()


def basis(n_points, n_knots, degree):
    grid = np.linspace(0, 1, n_points)
    inner = np.linspace(0, 1, n_knots)
    t = np.concatenate([[0] * degree, inner, [1] * degree])
    n = len(t) - degree - 1
    return np.column_stack([BSpline(t, np.eye(n)[k], degree)(grid) for k in range(n)])


def bootstrap_peak(y, time, args, rng):
    peaks = []
    for b in range(args.boot):
        pick = rng.integers(0, len(y), len(y))
        design = basis(args.points, args.knots, degree=3)
        rows = np.clip((time[pick] / 24 * (args.points - 1)).astype(int), 0, args.points - 1)
        coef, *_ = np.linalg.lstsq(design[rows], y[pick], rcond=1e-3)
        peaks.append(np.argmax(design @ coef) / args.points * 24)
    return np.mean(peaks), np.std(peaks)


def main(args):
    counts = pd.read_csv(args.table, index_col="hour")
    hours = counts.index.to_numpy(float)
    rng = np.random.default_rng(1)
    for gene in counts.columns:
        mean, sd = bootstrap_peak(counts[gene].to_numpy(), hours, args, rng)
        print(f"{gene}\t{mean:.2f}\t{sd:.2f}")


if __name__ == "__main__":
    main(arguments())
