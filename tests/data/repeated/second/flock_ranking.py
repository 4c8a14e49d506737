"""
verdict: none
stack:
  evolve(founders, 300)
  ranking(flock)
  fitness(genome)
  np.median(window)
why: breed changes the flock in place (sort, slice assignment), so the ranking is of other birds in each generation
"""
import random

import numpy as np

LANDSCAPE = np.load("landscape.npy")


def fitness(genes):
    x, y = (np.array(genes[:2]) * (np.array(LANDSCAPE.shape) - 1)).astype(int)
    window = LANDSCAPE[max(x - 20, 0): x + 20, max(y - 20, 0): y + 20]
    return float(np.median(window)) - 0.1 * sum(g * g for g in genes[2:])


def ranking(population):
    return [fitness(genome) for genome in population]


def breed(population, scores, rate=0.05):
    order = sorted(range(len(population)), key=scores.__getitem__, reverse=True)
    parents = [population[i] for i in order[: len(order) // 4]]
    children = []
    for _ in range(len(population)):
        a, b = random.sample(parents, 2)
        child = [random.choice(pair) for pair in zip(a, b)]
        children.append([min(1.0, max(0.0, g + random.gauss(0, rate))) for g in child])
    population[:] = children


def evolve(flock, generations):
    best = []
    for generation in range(generations):
        scores = ranking(flock)
        best.append(max(scores))
        breed(flock, scores)
    return best


if __name__ == "__main__":
    founders = [[random.random() for _ in range(12)] for _ in range(400)]
    print(evolve(founders, 300)[-1])
