"""Mean-field electrons on a disordered square lattice, at finite temperature.

For each sample of the disorder the Hamiltonian is diagonalised until the
charges no longer change.
"""
import numpy as np

SIDE = 28
U = 1.6
BETA = 6.0
SAMPLES = 4
MIXING = 0.35


def hopping():
    n = SIDE * SIDE
    h = np.zeros((n, n))
    index = np.arange(n).reshape(SIDE, SIDE)
    for axis in (0, 1):
        ahead = np.roll(index, -1, axis=axis)
        h[index.ravel(), ahead.ravel()] = -1.0
        h[ahead.ravel(), index.ravel()] = -1.0
    return h


def fermi(energies, electrons):
    """Occupations with the chemical potential found by bisection."""
    low, high = energies[0] - 5.0, energies[-1] + 5.0
    for _ in range(60):
        mu = 0.5 * (low + high)
        f = 1.0 / (1.0 + np.exp(np.clip(BETA * (energies - mu), -60, 60)))
        if f.sum() > electrons:
            high = mu
        else:
            low = mu
    return f, mu


def settle(h0, disorder, electrons, limit=60):
    n = len(disorder)
    charge = np.full(n, electrons / n)
    h = h0.copy()
    for turn in range(1, limit + 1):
        np.fill_diagonal(h, disorder + U * charge)
        energies, states = np.linalg.eigh(h)
        f, mu = fermi(energies, electrons)
        new = (states**2) @ f
        change = np.abs(new - charge).max()
        charge += MIXING * (new - charge)
        if change < 2e-6:
            break
    participation = np.sum(states**4, axis=0)
    near = np.abs(energies - mu) < 0.3
    return turn, mu, charge, participation[near].mean()


def main():
    h0 = hopping()
    n = SIDE * SIDE
    rng = np.random.default_rng(83)
    print(f"{n} sites, U = {U}, beta = {BETA}")
    results = []
    for sample in range(SAMPLES):
        disorder = rng.uniform(-2.0, 2.0, n)
        turns, mu, charge, ipr = settle(h0, disorder, electrons=0.4 * n)
        results.append((mu, charge.std(), ipr))
        print(f"sample {sample}: {turns} turns, mu {mu:+.4f}, charge spread {charge.std():.4f}")
    mu, spread, ipr = np.mean(results, axis=0)
    print(f"mean: mu {mu:+.4f}, spread {spread:.4f}, participation {ipr:.5f}")


if __name__ == "__main__":
    main()
