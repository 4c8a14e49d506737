"""
verdict: none
stack:
  anneal(start, COUPLINGS, 400)
  equilibrate(spins, bonds)
  math.exp(-gain / TEMPERATURE)
why: cool changes the global temperature, equilibrate changes the spins in place, and random numbers decide
"""
import math
import random

import numpy as np

TEMPERATURE = 4.0
COUPLINGS = np.random.default_rng(3).choice([-1.0, 1.0], size=(2, 64, 64))


def cool(factor=0.985, floor=0.02):
    global TEMPERATURE
    TEMPERATURE = max(TEMPERATURE * factor, floor)


def local_field(s, J, i, j):
    n = s.shape[0]
    return (J[0, i, j] * s[(i + 1) % n, j] + J[0, i - 1, j] * s[i - 1, j]
            + J[1, i, j] * s[i, (j + 1) % n] + J[1, i, j - 1] * s[i, j - 1])


def equilibrate(s, J, sweeps=20):
    accepted = 0
    for _ in range(sweeps * s.size):
        i, j = random.randrange(s.shape[0]), random.randrange(s.shape[1])
        gain = 2 * s[i, j] * local_field(s, J, i, j)
        if gain <= 0 or random.random() < math.exp(-gain / TEMPERATURE):
            s[i, j] = -s[i, j]
            accepted += 1
    return accepted / (sweeps * s.size)


def anneal(spins, bonds, stages):
    rates = []
    for stage in range(stages):
        rates.append(equilibrate(spins, bonds))
        if rates[-1] < 0.5:
            cool()
    return rates


if __name__ == "__main__":
    start = np.random.default_rng(4).choice([-1.0, 1.0], size=(64, 64))
    print(anneal(start, COUPLINGS, 400)[-1], TEMPERATURE)
