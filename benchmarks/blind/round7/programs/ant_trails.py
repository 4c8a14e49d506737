"""Foraging ants that do not visit a place twice on an excursion: trails and dispersal."""
import copy
import math
import random

import numpy as np
from scipy.ndimage import gaussian_filter

ANTS = 230
STEPS = 440
SIZE = 320
NEST = (SIZE // 2, SIZE // 2)
RECORD_EVERY = 5
MOVES = [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)]


class Ant:
    def __init__(self, number, cell):
        self.number = number
        self.route = [cell]
        self.heading = number % 8
        self.load = 0.0

    @property
    def cell(self):
        return self.route[-1]

    def options(self):
        row, col = self.cell
        cells = []
        for k, (dr, dc) in enumerate(MOVES):
            cell = (row + dr, col + dc)
            if 0 <= cell[0] < SIZE and 0 <= cell[1] < SIZE and cell not in self.route:
                cells.append((k, cell))
        return cells

    def move(self, scent, rng):
        choices = self.options()
        if not choices:
            self.route = [NEST]
            return
        weights = []
        for k, cell in choices:
            turn = min((k - self.heading) % 8, (self.heading - k) % 8)
            weights.append((0.05 + scent[cell]) * math.exp(-0.9 * turn))
        k, cell = rng.choices(choices, weights)[0]
        self.heading = k
        self.route.append(cell)


def make_food(rng):
    food = np.zeros((SIZE, SIZE))
    for _ in range(30):
        food[rng.randrange(SIZE), rng.randrange(SIZE)] = 400.0
    return gaussian_filter(food, 6.0)


def forage(rng):
    food = make_food(rng)
    scent = np.zeros((SIZE, SIZE))
    ants = [Ant(n, NEST) for n in range(ANTS)]
    record = []
    for step in range(STEPS):
        for ant in ants:
            ant.move(scent, rng)
            bite = min(food[ant.cell], 0.05)
            food[ant.cell] -= bite
            ant.load += bite
            scent[ant.cell] += 0.02 + bite
        scent = gaussian_filter(scent, 0.6) * 0.985
        if step % RECORD_EVERY == 0:
            record.append(copy.deepcopy(ants))
    return ants, record, scent


def dispersal(record):
    """Mean squared distance from the nest at each recorded step."""
    curve = []
    for ants in record:
        cells = np.array([ant.cell for ant in ants], dtype=float)
        curve.append(float(((cells - NEST) ** 2).sum(axis=1).mean()))
    return curve


def main():
    rng = random.Random(404)
    ants, record, scent = forage(rng)
    curve = dispersal(record)
    slope = np.polyfit(np.log(np.arange(2, len(curve))), np.log(curve[2:]), 1)[0]
    print("ants", len(ants), "records", len(record))
    print("food carried %.3f, best ant %.3f" % (sum(a.load for a in ants), max(a.load for a in ants)))
    print("dispersal exponent %.3f, scent maximum %.3f" % (slope, scent.max()))


if __name__ == "__main__":
    main()
