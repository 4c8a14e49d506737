"""Simulated annealing of the chemical order in a ternary alloy on a square lattice."""
import copy
import math
import random

SIDE = 34
STEPS = 24_000
COUPLING = [[-3, 4, 1], [4, -2, -5], [1, -5, 2]]


def start(rnd):
    atoms = [k % 3 for k in range(SIDE * SIDE)]
    rnd.shuffle(atoms)
    return [atoms[r * SIDE:(r + 1) * SIDE] for r in range(SIDE)]


def energy(grid):
    total = 0
    for r in range(SIDE):
        row, below = grid[r], grid[(r + 1) % SIDE]
        for c in range(SIDE):
            pairs = COUPLING[row[c]]
            total += pairs[row[(c + 1) % SIDE]] + pairs[below[c]]
    return total


def propose(rnd):
    return (rnd.randrange(SIDE), rnd.randrange(SIDE)), (rnd.randrange(SIDE), rnd.randrange(SIDE))


def temperature(step):
    return 6.0 * math.exp(-4.0 * step / STEPS)


def anneal(grid, rnd):
    current = energy(grid)
    best, accepted = current, 0
    for step in range(STEPS):
        (r1, c1), (r2, c2) = propose(rnd)
        trial = copy.deepcopy(grid)
        trial[r1][c1], trial[r2][c2] = trial[r2][c2], trial[r1][c1]
        change = energy(trial) - current
        if change <= 0 or rnd.random() < math.exp(-change / temperature(step)):
            grid = trial
            current += change
            accepted += 1
            best = min(best, current)
    return grid, best, accepted


def order_parameter(grid):
    unlike = sum(grid[r][c] != grid[r][(c + 1) % SIDE] for r in range(SIDE) for c in range(SIDE))
    return unlike / (SIDE * SIDE)


def main():
    rnd = random.Random(31)
    grid = start(rnd)
    before = order_parameter(grid)
    grid, best, accepted = anneal(grid, rnd)
    print("final energy", energy(grid), "best", best)
    print("accepted", accepted, "of", STEPS)
    print("order %.4f -> %.4f" % (before, order_parameter(grid)))


if __name__ == "__main__":
    main()
