"""
verdict: none
stack:
  anneal()
  weights_table(BONDS)
  np.exp(-np.abs(bonds[:, :, None] - LEVELS) / temperature)
why: the table depends on a global temperature that another function lowers in each round
"""
import numpy as np

rng = np.random.default_rng(8)
BONDS = np.load("bonds.npy")
LEVELS = np.linspace(-4, 4, 257)
temperature = 4.0


def cool(factor):
    global temperature
    temperature *= factor


def weights_table(bonds):
    table = np.exp(-np.abs(bonds[:, :, None] - LEVELS) / temperature)
    return table.cumsum(axis=2)


def sweep(spins, table):
    n = len(spins)
    for i in rng.permutation(n):
        field = BONDS[i] @ spins
        level = min(np.searchsorted(LEVELS, np.clip(field, -4, 4)), len(LEVELS) - 1)
        share = table[i, :, level].mean() / table[i, :, -1].mean()
        spins[i] = 1 if rng.random() < share else -1


def anneal(rounds=60):
    spins = rng.choice([-1, 1], size=len(BONDS))
    for r in range(rounds):
        table = weights_table(BONDS)
        sweep(spins, table)
        cool(0.93)
    return spins


if __name__ == "__main__":
    print(anneal() @ BONDS @ np.ones(len(BONDS)))
