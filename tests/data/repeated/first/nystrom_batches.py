"""
verdict: none
stack:
  train(np.load("solubility.npz"), epochs=25)
  gram(x[chunk], length)
  cdist(rows, rows, "sqeuclidean")
why: the order is shuffled in each epoch, so the chunks of the inner loop are other ones in each epoch
"""
import random

import numpy as np
from scipy.spatial.distance import cdist


def gram(rows, scale):
    return np.exp(-cdist(rows, rows, "sqeuclidean") / (2 * scale**2))


def chunks(order, size):
    for start in range(0, len(order), size):
        yield order[start : start + size]


def train(data, epochs, size=400, length=3.0, rate=0.1):
    x, y = data["x"], data["y"]
    alpha = np.zeros(len(y))
    order = list(range(len(y)))
    errors = []
    for epoch in range(epochs):
        random.shuffle(order)
        squared = 0.0
        for chunk in chunks(order, size):
            k = gram(x[chunk], length)
            residual = y[chunk] - k @ alpha[chunk]
            alpha[chunk] += rate * residual
            squared += (residual**2).sum()
        errors.append(np.sqrt(squared / len(y)))
    return alpha, errors


if __name__ == "__main__":
    train(np.load("solubility.npz"), epochs=25)
