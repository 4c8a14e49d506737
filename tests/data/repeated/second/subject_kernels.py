"""
verdict: set
stack:
  tune(cohort, np.logspace(-4, 3, 24))
  gram(series, width=0.7)
  pdist(windows, "sqeuclidean")
call: gram(series, width=0.7)
loop: for penalty in penalties
why: the kernel of each subject does not depend on the penalty, and each penalty goes through the same subjects
"""
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.spatial.distance import pdist, squareform


def gram(signal, width):
    windows = sliding_window_view(signal, 40)[::2]
    windows = (windows - windows.mean()) / windows.std()
    return np.exp(-squareform(pdist(windows, "sqeuclidean")) * width / windows.shape[1])


def ridge_error(K, y, penalty):
    half = len(y) // 2
    alpha = np.linalg.solve(K[:half, :half] + penalty * np.eye(half), y[:half])
    return float(np.mean((K[half:, :half] @ alpha - y[half:]) ** 2))


def tune(subjects, penalties):
    curve = []
    for penalty in penalties:
        errors = []
        for name, (series, response) in subjects.items():
            K = gram(series, width=0.7)
            errors.append(ridge_error(K, response, penalty))
        curve.append(np.mean(errors))
    return penalties[int(np.argmin(curve))]


def main():
    archive = np.load("subjects.npz")
    names = sorted({key.split("/")[0] for key in archive})
    cohort = {n: (archive[f"{n}/series"], archive[f"{n}/response"]) for n in names}
    best = tune(cohort, np.logspace(-4, 3, 24))
    print("best penalty", best)


if __name__ == "__main__":
    main()
