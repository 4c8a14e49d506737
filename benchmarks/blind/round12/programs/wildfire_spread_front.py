"""Spread of a wildfire with flying embers over a landscape of fuel cells."""
import copy

import numpy as np
from scipy.ndimage import gaussian_filter

SIDE = 600
SECTOR = 10
EVERY = 1200
EMBERS = ((0, 1), (1, 0), (0, -1), (-1, 0), (3, 9), (-2, 11), (5, 4), (1, 14), (-6, 7),
          (40, 90), (-70, 120), (150, 60), (-110, -160))


def landscape():
    rng = np.random.default_rng(2003)
    rough = rng.standard_normal((SIDE, SIDE))
    fuel = sum(gaussian_filter(rough, s) * s for s in (2, 4, 8, 16))
    fuel = (fuel - fuel.min()) / (fuel.max() - fuel.min())
    fuel[SIDE // 3, : SIDE // 2] = 0.0
    return fuel


def burn(fuel, seed):
    rng = np.random.default_rng(seed)
    chance = (0.15 + 0.85 * fuel).tolist()
    luck = rng.random((SIDE, SIDE)).tolist()
    size = fuel.shape[0]
    seen = [[False] * size for _ in range(size)]
    sectors = {(r, c): [0, 0.0] for r in range(size // SECTOR) for c in range(size // SECTOR)}
    history = []
    start = size // 2
    seen[start][start] = True
    queue = [(start, start)]
    burnt = 0
    while queue:
        row, col = queue.pop(0)
        burnt += 1
        tally = sectors[row // SECTOR, col // SECTOR]
        tally[0] += 1
        tally[1] += chance[row][col]
        for dr, dc in EMBERS:
            r, c = (row + dr) % size, (col + dc) % size
            if not seen[r][c] and luck[r][c] < chance[r][c] + 0.25:
                seen[r][c] = True
                queue.append((r, c))
        if burnt % EVERY == 0:
            history.append((burnt, len(queue), copy.deepcopy(sectors)))
    return burnt, history


def front_curve(history):
    touched = [sum(1 for tally in sectors.values() if tally[0]) for _, _, sectors in history]
    heat = [sum(tally[1] for tally in sectors.values()) for _, _, sectors in history]
    longest = max(length for _, length, _ in history)
    return touched, heat, longest


def smoke(fuel, rng, members=120):
    total = np.zeros_like(fuel)
    for _ in range(members):
        source = fuel * (rng.random(fuel.shape) < 0.05)
        total += gaussian_filter(source, sigma=(6.0, 18.0)) / members
    return total


def main():
    fuel = landscape()
    burnt, history = burn(fuel, 9)
    touched, heat, longest = front_curve(history)
    plume = smoke(fuel, np.random.default_rng(4))
    half = next(i for i, t in enumerate(touched) if t >= touched[-1] / 2)
    print(f"{burnt} cells burnt, longest front {longest}")
    print(f"half of the sectors reached after {history[half][0]} cells, heat {heat[-1]:.2f}")
    print(f"smoke mean {plume.mean():.6f} max {plume.max():.6f}")


if __name__ == "__main__":
    main()
