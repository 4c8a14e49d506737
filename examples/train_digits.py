"""Train a small neural network on handwritten digits, with only NumPy.

A real training, small enough for any laptop: 1,797 images of 8 x 8 pixels (see
data/README.md for their origin and licence), two hidden layers, momentum, and a
test accuracy at the end. It takes ten seconds on a laptop, or the time that you give.

    teho run -- python examples/train_digits.py
"""

from __future__ import annotations

import argparse
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

DATA = Path(__file__).parent / "data" / "digits.csv.gz"
LAYERS = (64, 512, 512, 10)
BATCH = 128


def load() -> tuple[np.ndarray, np.ndarray]:
    """Return pixels (1797, 64), scaled to 0..1, and digits (1797,)."""
    table = np.loadtxt(DATA, delimiter=",", dtype=np.float32)
    return table[:, :64] / 16, table[:, 64].astype(int)


def forward(weights: list[np.ndarray], batch: np.ndarray) -> list[np.ndarray]:
    """Return the activations of every layer; the last are class probabilities (n, 10)."""
    layers = [batch]
    for weight in weights[:-1]:
        layers.append(np.maximum(layers[-1] @ weight, 0))
    scores = layers[-1] @ weights[-1]
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return [*layers, scores / scores.sum(axis=1, keepdims=True)]


def gradients(
    weights: list[np.ndarray], layers: list[np.ndarray], digits: np.ndarray
) -> list[np.ndarray]:
    """Return the gradient of the cross-entropy for each weight matrix."""
    error = layers[-1].copy()
    error[np.arange(len(digits)), digits] -= 1
    error /= len(digits)
    result = []
    for index in reversed(range(len(weights))):
        result.append(layers[index].T @ error)
        if index:
            error = (error @ weights[index].T) * (layers[index] > 0)
    return result[::-1]


def accuracy(weights: list[np.ndarray], pixels: np.ndarray, digits: np.ndarray) -> float:
    """Return the share of images that are recognised."""
    return float((forward(weights, pixels)[-1].argmax(axis=1) == digits).mean())


def main() -> None:
    """Train, and print the accuracy from time to time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=150)
    parser.add_argument("--seconds", type=float, default=0, help="train for at least this long [s]")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    random = np.random.default_rng(options.seed)
    pixels, digits = load()
    order = random.permutation(len(pixels))
    train, test = order[:1500], order[1500:]
    weights = [
        random.normal(0, np.sqrt(2 / inputs), (inputs, outputs)).astype(np.float32)
        for inputs, outputs in pairwise(LAYERS)
    ]
    speeds = [np.zeros_like(weight) for weight in weights]
    began_s, epoch = time.monotonic(), 0
    while epoch < options.epochs or time.monotonic() - began_s < options.seconds:
        epoch += 1
        shuffled = random.permutation(train)
        for start in range(0, len(shuffled), BATCH):
            batch = shuffled[start : start + BATCH]
            layers = forward(weights, pixels[batch])
            slopes = gradients(weights, layers, digits[batch])
            for index, slope in enumerate(slopes):
                speeds[index] = 0.9 * speeds[index] - 0.05 * slope
                weights[index] += speeds[index]
        if epoch % 150 == 0:
            tell(epoch, accuracy(weights, pixels[test], digits[test]))
    if epoch % 150:
        tell(epoch, accuracy(weights, pixels[test], digits[test]))


def tell(epoch: int, share: float) -> None:
    """Print the accuracy after an epoch."""
    print(f"epoch {epoch:5d}  test accuracy {share:.3f}")


if __name__ == "__main__":
    main()
