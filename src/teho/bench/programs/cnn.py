"""A small convolutional network trained on CIFAR-10: is it the network that takes the time?

It has 62,006 parameters. This is so little work that reading an image may take longer. One epoch is
timed from each of three feeds: a DataLoader, host memory, the device; also the copy to the device.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _images import LEARNING_RATE, ImageExample, TorchTraining
from harness import serve
from libraries import Library

_SHAPES = ((6, 3, 5, 5), (16, 6, 5, 5), (120, 400), (84, 120), (10, 84))
"""Shapes of the weights: two convolutions [out, in, height, width], three layers [out, in]."""


def initial_weights() -> list[np.ndarray]:
    """Return weights and biases in turn, float32, uniform within 1 / √inputs as in PyTorch."""
    rng = np.random.default_rng(0)
    found = []
    for shape in _SHAPES:
        most = np.prod(shape[1:]) ** -0.5
        found += [rng.uniform(-most, most, size) for size in (shape, shape[0])]
    return [array.astype(np.float32) for array in found]


class Cnn(ImageExample):
    """The network in one library."""

    def training(self, *, exact: bool = False) -> Any:
        """Return the training in JAX, or in PyTorch."""
        if self.library.name == "jax":
            return _JaxTraining(self.library)
        network = _torch_network(self.library.package)
        return TorchTraining(self.library, network.double() if exact else network)


def _torch_network(torch: Any) -> Any:
    nn = torch.nn
    network = nn.Sequential(
        nn.Conv2d(3, 6, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(),
        nn.Linear(120, 84), nn.ReLU(),
        nn.Linear(84, 10),
    )  # fmt: skip
    with torch.no_grad():
        for parameter, weight in zip(network.parameters(), initial_weights()):
            parameter.copy_(torch.from_numpy(weight))
    return network


class _JaxTraining:
    """The same in JAX, which has no loader."""

    def __init__(self, library: Library) -> None:
        self.jax = library.package
        self.weights = [library.to_device(weight) for weight in initial_weights()]
        self._update = self.jax.jit(self._one_step)

    def epoch(self, batches: Any) -> Any:
        """Train on each batch; return the loss on the last."""
        for images, labels in batches:
            self.weights, loss = self._update(self.weights, images, labels)
        return loss

    def figures(self, batches: Any) -> list[float]:
        """Train, and return the last loss and how far each parameter moved, over the learning rate.

        It uses full float32. The timed runs use JAX's default, which may be TF32 on NVIDIA.
        """
        old = self.weights
        with self.jax.default_matmul_precision("highest"):
            loss = self.epoch(batches)
        moved = [new - was for new, was in zip(self.weights, old)]
        return [float(loss), *(float((one**2).sum() ** 0.5) / LEARNING_RATE for one in moved)]

    def _one_step(self, weights: Any, images: Any, labels: Any) -> Any:
        loss, gradients = self.jax.value_and_grad(self._loss)(weights, images, labels)
        return [one - LEARNING_RATE * by for one, by in zip(weights, gradients)], loss

    def _loss(self, weights: Any, images: Any, labels: Any) -> Any:
        jax, lax = self.jax, self.jax.lax
        hidden = images
        for weight, bias in zip(weights[0:4:2], weights[1:4:2]):
            hidden = lax.conv_general_dilated(hidden, weight, (1, 1), "VALID")
            hidden = jax.nn.relu(hidden + bias[:, None, None])
            hidden = lax.reduce_window(
                hidden, -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"
            )
        hidden = hidden.reshape(len(images), -1)
        for weight, bias in zip(weights[4::2], weights[5::2]):
            out = hidden @ weight.T + bias
            hidden = jax.nn.relu(out)
        chosen = jax.numpy.take_along_axis(jax.nn.log_softmax(out), labels[:, None], axis=1)
        return -chosen.mean()


if __name__ == "__main__":
    serve(Cnn, libraries=("torch", "jax"))
