"""Evolve controllers of digging voles; two worker processes rate the population."""
import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

from concurrent.futures import ProcessPoolExecutor

import numpy as np

INPUTS, HIDDEN, OUTPUTS = 8, 16, 2
GENES = INPUTS * HIDDEN + HIDDEN * OUTPUTS
POPULATION = 256
STARTS = 8
STEPS = 150
GENERATIONS = 320


def rate(genes, seed):
    """Digs all tunnels of a part of the population at once."""
    count = len(genes)
    first = genes[:, : INPUTS * HIDDEN].reshape(count, INPUTS, HIDDEN)
    second = genes[:, INPUTS * HIDDEN:].reshape(count, HIDDEN, OUTPUTS)
    rng = np.random.default_rng(seed)
    place = np.tile(rng.normal(0, 1, (STARTS, 2)), (count, 1, 1))
    food = np.tile(rng.normal(0, 2, (STARTS, 2)), (count, 1, 1))
    speed = np.zeros_like(place)
    seen = np.empty((count, STARTS, INPUTS))
    reward = np.zeros(count)
    for step in range(STEPS):
        seen[..., 0:2] = food - place
        seen[..., 2:4] = speed
        seen[..., 4:6] = np.sin(place)
        seen[..., 6] = step / STEPS
        seen[..., 7] = 1.0
        push = np.tanh(np.tanh(seen @ first) @ second)
        speed = 0.9 * speed + 0.05 * push
        place = place + speed
        reward -= np.sqrt(((food - place) ** 2).sum(-1)).mean(-1) + 0.01 * (push ** 2).sum((1, 2))
    return reward / STEPS


def main():
    rng = np.random.default_rng(9)
    centre = rng.normal(0, 0.1, GENES)
    with ProcessPoolExecutor(2) as pool:
        for generation in range(GENERATIONS):
            noise = rng.normal(0, 1, (POPULATION // 2, GENES))
            noise = np.concatenate([noise, -noise])
            genes = centre + 0.1 * noise
            halves = np.array_split(genes, 2)
            reward = np.concatenate(list(pool.map(rate, halves, [generation, generation])))
            ranks = reward.argsort().argsort() / (POPULATION - 1) - 0.5
            centre += 0.3 / (POPULATION * 0.1) * ranks @ noise
            if generation % 40 == 39:
                print(f"generation {generation + 1}: mean reward {reward.mean():.4f}", flush=True)


if __name__ == "__main__":
    main()
