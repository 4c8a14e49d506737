"""ResNet-152 trained on CIFAR-10: a network that keeps a GPU busy, whatever the feed is.

Compared with `cnn`, it has the same images and feeds, a thousand times the parameters, and some 360
times the arithmetic. He et al., 2015 (arXiv 1512.03385) describe the network. As usual, the stride
is in the 3 × 3 convolution, and there are 1,000 classes: 60,192,808 parameters.
"""

from __future__ import annotations

import math
from typing import Any

from _images import ImageExample, TorchTraining
from harness import Point, serve

_STAGES = ((64, 3, 1), (128, 8, 2), (256, 36, 2), (512, 3, 2))
"""Width, blocks, and the stride of the first block."""


def resnet152(torch: Any) -> Any:
    """Return the model with PyTorch's initial weights from seed 0."""
    nn = torch.nn
    torch.manual_seed(0)

    class Residual(nn.Module):  # type: ignore[misc,name-defined]  # torch is Any
        def __init__(self, body: Any, shortcut: Any) -> None:
            super().__init__()
            self.body = body
            self.shortcut = shortcut

        def forward(self, x: Any) -> Any:
            return nn.functional.relu(self.body(x) + self.shortcut(x))

    def convolution(inputs: int, outputs: int, size: int, stride: int = 1) -> list[Any]:
        return [
            nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False),
            nn.BatchNorm2d(outputs),
        ]

    def bottleneck(inputs: int, width: int, stride: int) -> Any:
        outputs = 4 * width
        body = [
            *convolution(inputs, width, 1), nn.ReLU(),
            *convolution(width, width, 3, stride), nn.ReLU(),
            *convolution(width, outputs, 1),
        ]  # fmt: skip
        shortcut = [] if inputs == outputs else convolution(inputs, outputs, 1, stride)
        return Residual(nn.Sequential(*body), nn.Sequential(*shortcut))

    layers = [*convolution(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, padding=1)]
    inputs = 64
    for width, blocks, first_stride in _STAGES:
        for stride in (first_stride, *[1] * (blocks - 1)):
            layers.append(bottleneck(inputs, width, stride))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


class ResNet152(ImageExample):
    """The network in PyTorch."""

    def training(self, *, exact: bool = False) -> TorchTraining:
        """Return the training in float32 or float64."""
        model = resnet152(self.library.package)
        return TorchTraining(self.library, model.double() if exact else model)

    def check(self, point: Point) -> list[float]:
        """Return the last loss of an epoch, and the logarithm of how far all parameters moved.

        Through this number of layers, gradients grow to some 10⁴, and rounding errors to 1 %.
        """
        loss, *moved = super().check(point)
        return [loss, math.log(math.hypot(*moved))]


if __name__ == "__main__":
    serve(ResNet152, libraries=("torch",))
