"""Exact Gaussian process for cracks in drying pasta: the marginal likelihood of length scales."""
import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

BATCHES, SETTINGS = 5600, 6
SCALES = [0.8, 1.1, 1.5, 2.0, 2.7, 3.6, 4.8, 6.4]
NOISE = 0.05


def drying_runs(seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (BATCHES + 500, SETTINGS))
    humid, warm, time = x[:, 0], x[:, 1], x[:, 2]
    cracks = np.sin(2 * warm) * humid + 0.5 * np.cos(3 * time) + 0.3 * x[:, 3] * x[:, 4]
    return x, cracks + np.sqrt(NOISE) * rng.normal(size=len(x))


def kernel(sq, scale, out):
    np.multiply(sq, -0.5 / scale ** 2, out=out)
    np.exp(out, out=out)
    return out


def fit(sq, y, scale, work):
    k = kernel(sq, scale, work)
    k[np.diag_indices_from(k)] += NOISE
    factor = cho_factor(k.T, lower=True, overwrite_a=True, check_finite=False)
    alpha = cho_solve(factor, y, check_finite=False)
    log_det = 2.0 * np.log(np.diag(factor[0])).sum()
    evidence = -0.5 * (y @ alpha) - 0.5 * log_det - 0.5 * len(y) * np.log(2 * np.pi)
    return evidence, alpha


def main():
    x, y = drying_runs(91)
    train, test = slice(0, BATCHES), slice(BATCHES, None)
    sq = cdist(x[train], x[train], "sqeuclidean")
    work = np.empty_like(sq)
    best = None
    for scale in SCALES:
        evidence, alpha = fit(sq, y[train], scale, work)
        print(f"length scale {scale:4.1f}  log evidence {evidence:12.2f}")
        if best is None or evidence > best[0]:
            best = (evidence, scale, alpha)
    cross = np.exp(-0.5 * cdist(x[test], x[train], "sqeuclidean") / best[1] ** 2)
    error = cross @ best[2] - y[test]
    print(f"best scale {best[1]}, test rmse {np.sqrt((error ** 2).mean()):.4f}")


if __name__ == "__main__":
    main()
