"""Gaussian process for survival of tardigrades over humidity, temperature and radiation."""
import numpy as np
from scipy.linalg import cho_solve, cholesky
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize

SAMPLES = 1900
INPUTS = 3


def dry_out(count, rng):
    x = rng.uniform(-2, 2, size=(count, INPUTS))
    y = np.sin(1.5 * x[:, 0]) * np.exp(-0.3 * x[:, 1] ** 2) + 0.3 * x[:, 2]
    return x, y + rng.normal(0, 0.15, count)


def evidence(theta, squares, y):
    scale = np.exp(-2 * theta[:INPUTS])
    amp, noise = np.exp(2 * theta[INPUTS]), np.exp(2 * theta[INPUTS + 1])
    k = np.tensordot(scale, squares, axes=1)
    k *= -0.5
    np.exp(k, out=k)
    k *= amp
    n = len(y)
    full = k.copy()
    full[np.diag_indices(n)] += noise + 1e-8
    low = cholesky(full, lower=True, overwrite_a=True, check_finite=False)
    alpha = cho_solve((low, True), y, check_finite=False)
    value = 0.5 * y @ alpha + np.log(np.diag(low)).sum() + 0.5 * n * np.log(2 * np.pi)
    inverse, _ = dpotri(low, lower=1)
    w = np.tril(inverse)
    w = w + np.tril(inverse, -1).T
    w -= np.outer(alpha, alpha)
    trace = np.trace(w)
    w *= k
    grad = np.empty(INPUTS + 2)
    for d in range(INPUTS):
        grad[d] = 0.5 * scale[d] * np.vdot(w, squares[d])
    grad[INPUTS] = w.sum()
    grad[INPUTS + 1] = noise * trace
    return value, grad


def main():
    rng = np.random.default_rng(36)
    x, y = dry_out(SAMPLES, rng)
    squares = np.stack([(x[:, d, None] - x[None, :, d]) ** 2 for d in range(INPUTS)])
    best = None
    for start in range(3):
        theta = rng.normal(0, 0.4, size=INPUTS + 2)
        fit = minimize(evidence, theta, args=(squares, y), jac=True, method="L-BFGS-B",
                       bounds=[(-3, 3)] * (INPUTS + 2),
                       options={"maxiter": 16, "maxfun": 20})
        print(f"start {start} evidence {-fit.fun:.3f} calls {fit.nfev}")
        if best is None or fit.fun < best.fun:
            best = fit
    print("length scales", np.exp(best.x[:INPUTS]).round(3).tolist())
    print(f"noise {np.exp(best.x[-1]):.4f}")


if __name__ == "__main__":
    main()
