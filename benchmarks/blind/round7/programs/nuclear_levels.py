"""Level spacings of a random-matrix model of nuclei, between order and chaos."""
import numpy as np

LEVELS = 1_600
MEMBERS = 5
COUPLINGS = (0.02, 0.08, 0.3, 1.0)
DISTANCE = np.abs(np.subtract.outer(np.arange(LEVELS), np.arange(LEVELS)))
RANGE = np.exp(-DISTANCE / 150.0)


def hamiltonian(rng, coupling):
    """Single-particle energies plus a residual interaction whose strength falls with the distance."""
    energy = np.sort(rng.uniform(0.0, 100.0, LEVELS))
    noise = rng.normal(0.0, 1.0, (LEVELS, LEVELS))
    matrix = (noise + noise.T) * (coupling / np.sqrt(2.0))
    matrix *= RANGE
    matrix[np.diag_indices(LEVELS)] += energy
    return matrix


def unfold(levels, degree=9):
    """Levels with mean spacing one, after a fit of the cumulative number."""
    inner = levels[LEVELS // 10: -LEVELS // 10]
    x = 2 * (inner - inner[0]) / (inner[-1] - inner[0]) - 1
    fit = np.polynomial.chebyshev.chebfit(x, np.arange(len(x)), degree)
    return np.polynomial.chebyshev.chebval(x, fit)


def ratios(levels):
    gaps = np.diff(levels[LEVELS // 10: -LEVELS // 10])
    return np.minimum(gaps[1:], gaps[:-1]) / np.maximum(gaps[1:], gaps[:-1])


def rigidity(unfolded, length=12.0):
    """Variance of the number of levels in windows of the given mean number."""
    starts = np.arange(unfolded[0], unfolded[-1] - length, 0.5)
    inside = np.searchsorted(unfolded, starts + length) - np.searchsorted(unfolded, starts)
    return float(inside.var())


def main():
    rng = np.random.default_rng(1951)
    for coupling in COUPLINGS:
        ratio, spread, small = [], [], []
        for _ in range(MEMBERS):
            levels = np.linalg.eigvalsh(hamiltonian(rng, coupling))
            unfolded = unfold(levels)
            ratio.append(ratios(levels).mean())
            spread.append(rigidity(unfolded))
            small.append(np.mean(np.diff(unfolded) < 0.2))
        print("coupling %.2f  ratio %.3f  number variance %.2f  small gaps %.3f"
              % (coupling, np.mean(ratio), np.mean(spread), np.mean(small)))


if __name__ == "__main__":
    main()
