"""Evolve a controller that keeps a kite high in gusty wind (evolution strategy).

Two helper processes fly the candidates; the main process combines their results.
"""
import multiprocessing as mp
import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

SIZE = 6 * 12 + 12 + 12 * 2 + 2
PEOPLE, GENERATIONS, SIGMA = 28, 56, 0.15
STEPS = 220


def unpack(theta):
    a = theta[:72].reshape(6, 12)
    b = theta[72:84]
    c = theta[84:108].reshape(12, 2)
    return a, b, c, theta[108:]


def fly(theta, seed):
    """Mean height of one flight, with a price on pulling the lines."""
    a, b, c, d = unpack(theta)
    rng = np.random.default_rng(seed)
    gusts = rng.normal(0, 0.3, STEPS)
    height, climb, roll, spin, wind, total = 10.0, 0.0, 0.0, 0.0, 5.0, 0.0
    for t in range(STEPS):
        seen = np.array([height / 30, climb / 5, roll, spin, wind / 8, 1.0])
        pull, steer = np.tanh(np.tanh(seen @ a + b) @ c + d)
        wind += 0.1 * (5 - wind) + gusts[t]
        lift = 0.25 * wind * (1 + pull) * np.cos(roll) - 2.0
        climb += 0.1 * (lift - 0.3 * climb)
        spin += 0.1 * (2 * steer + 0.4 * gusts[t] - 0.5 * spin)
        roll += 0.1 * spin
        height = min(40.0, max(0.0, height + 0.1 * climb))
        total += height - 0.5 * pull * pull - abs(roll)
    return total / STEPS


def helper(line, number):
    while True:
        task = line.recv()
        if task is None:
            return
        theta, generation = task
        scores = []
        for person in range(PEOPLE):
            noise = np.random.default_rng([generation, number, person]).normal(size=SIZE)
            for sign in (1, -1):
                scores.append(fly(theta + sign * SIGMA * noise, generation))
        line.send(scores)


def collect(lines):
    """The scores of both helpers, once both are done."""
    while not all(line.poll() for line in lines):
        time.sleep(0.5)
    return [line.recv() for line in lines]


def main():
    lines, helpers = [], []
    for number in range(2):
        mine, theirs = mp.Pipe()
        process = mp.Process(target=helper, args=(theirs, number), daemon=True)
        process.start()
        lines.append(mine)
        helpers.append(process)
    theta = np.zeros(SIZE)
    for generation in range(GENERATIONS):
        for line in lines:
            line.send((theta, generation))
        scores = np.array(collect(lines)).reshape(2, PEOPLE, 2)
        rank = scores.ravel().argsort().argsort().reshape(scores.shape) / scores.size - 0.5
        slope = np.zeros(SIZE)
        for number in range(2):
            for person in range(PEOPLE):
                noise = np.random.default_rng([generation, number, person]).normal(size=SIZE)
                slope += (rank[number, person, 0] - rank[number, person, 1]) * noise
        theta = theta + 0.6 * slope / (2 * PEOPLE * SIGMA) * SIGMA
        if generation % 11 == 0:
            print(f"generation {generation:2d}: mean height score {scores.mean():.2f}")
    print(f"last flight: {fly(theta, 999):.2f}")
    for line, process in zip(lines, helpers):
        line.send(None)
        process.join()


if __name__ == "__main__":
    main()
