"""Train a network on generated data, in a loop of the user's own.

python train_model.py NETWORK SECONDS [--watch]

NETWORK is resnet, transformer, tiny (many small operations) or compiled. Prints one line of JSON:
seconds of each part of a step by the program's own clock, the line of each part, and with --watch
what PyTorch's profiler says of the same parts.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import nn
from watching import MOST_STEPS, account

HAS_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if HAS_GPU else "cpu")


class Bottleneck(nn.Module):
    """A block of ResNet-50: 1 × 1, 3 × 3 and 1 × 1 convolutions around a shortcut."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs),
        )  # fmt: skip
        self.shortcut = nn.Identity()
        if inputs != outputs:
            self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(images) + self.shortcut(images))


def resnet() -> nn.Module:
    stages = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)) if HAS_GPU else ((4, 1, 2),)
    first = stages[0][0]
    layers: list[nn.Module] = [nn.Conv2d(3, first, 7, 2, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    inputs = first
    for width, blocks, stride in stages:
        for number in range(blocks):
            layers.append(Bottleneck(inputs, width, stride if number == 0 else 1))
            inputs = 4 * width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000)]
    return nn.Sequential(*layers)


class Transformer(nn.Module):
    """A small encoder over generated tokens."""

    def __init__(self) -> None:
        super().__init__()
        width, layers = (512, 6) if HAS_GPU else (32, 1)
        self.embedding = nn.Embedding(1000, width)
        layer = nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.last = nn.Linear(width, 1000)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.last(self.encoder(self.embedding(tokens)).mean(1))


class Tiny(nn.Module):
    """Many operations on few numbers: Python and the launches take the time."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(100 if HAS_GPU else 10))
        self.last = nn.Linear(32, 1000)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            rows = rows + torch.tanh(layer(rows))
        return self.last(rows)


def network(name: str) -> tuple[nn.Module, torch.Tensor]:
    """Return a network, and a batch for it in host memory."""
    size, batch = (224, 64) if HAS_GPU else (32, 4)
    if name == "resnet":
        return resnet(), torch.randn(batch, 3, size, size)
    if name == "tiny":
        return Tiny(), torch.randn(32, 32)
    model = Transformer()
    tokens = torch.randint(0, 1000, (batch, 128 if HAS_GPU else 16))
    if name == "compiled":
        # Without a GPU only the way there is of interest.
        model = torch.compile(model, backend="inductor" if HAS_GPU else "eager")
    return model, tokens


def lines() -> dict[int, str]:
    """Return which line of this file is which part."""
    source = Path(__file__).read_text(encoding="utf-8").splitlines()
    found = {number: re.search(r"  # part: (\w+)$", line) for number, line in enumerate(source, 1)}
    return {number: match[1] for number, match in found.items() if match}


def main(name: str, seconds: float, *, watched: bool) -> None:
    torch.manual_seed(0)
    model, host = network(name)
    model.to(DEVICE)
    wanted = torch.randint(0, 1000, (len(host),), device=DEVICE)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    spent_s: dict[str, float] = {}

    @contextmanager
    def part(kind: str) -> Iterator[None]:
        began_s = time.perf_counter()
        with torch.profiler.record_function(f"part: {kind}") if watched else nullcontext():
            yield
        spent_s[kind] = spent_s.get(kind, 0.0) + time.perf_counter() - began_s

    def step() -> None:
        with part("copy"):
            batch = host.to(DEVICE)  # part: copy
        with part("forward"):
            loss = nn.functional.cross_entropy(model(batch), wanted)  # part: forward
        with part("backward"):
            loss.backward()  # part: backward
        with part("optimizer"):
            optimizer.step()  # part: optimizer
            optimizer.zero_grad()  # part: optimizer
        with part("item"):
            loss.item()  # part: item

    began_s = time.perf_counter()
    step()  # compiles
    told: dict[str, Any] = {"first_s": time.perf_counter() - began_s, "lines": lines()}
    spent_s.clear()
    steps, began_s = 0, time.perf_counter()
    with account(told, watched=watched):
        while time.perf_counter() - began_s < seconds and not (watched and steps == MOST_STEPS):
            step()
            steps += 1
        elapsed_s = time.perf_counter() - began_s
    print(json.dumps({**told, "steps": steps, "elapsed_s": elapsed_s, "spent_s": spent_s}))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), watched="--watch" in sys.argv)
