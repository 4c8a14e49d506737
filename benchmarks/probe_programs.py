"""The programs of the benchmark `probe`, which run in separate processes; see `probe.py`.

python probe_programs.py PROGRAM RESULT SECONDS PEER          steps a second; PEER may be none
python probe_programs.py PROGRAM RESULT SECONDS PEER hooks    the same, then what `hooks` measures
python probe_programs.py PROGRAM RESULT windows COUNT LENGTH  what the probe costs, in windows
python probe_programs.py hooks RESULT                         time of an empty step of PyTorch
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

Watch = Callable[[Any], AbstractContextManager[object]]
"""What a peer wants to have around each step, given the model."""
_MOST_WARM_UP_S = 2.0
_DOSE = 10
"""The sampler looks so many times as often as it does on average in the first 150 s."""


def _training(watch: Watch) -> Iterator[None]:
    """Train a small network on images that its own process decodes."""
    import torch

    class Images(torch.utils.data.Dataset[tuple[torch.Tensor, int]]):
        def __init__(self) -> None:
            self._bytes = torch.randint(0, 256, (2048, 3, 32, 32), dtype=torch.uint8)

        def __len__(self) -> int:
            return len(self._bytes)

        def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
            return self._bytes[index].float() / 255, index % 10

    torch.manual_seed(1)
    loader = torch.utils.data.DataLoader(Images(), batch_size=32, shuffle=True)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 3, stride=2),
        torch.nn.ReLU(),
        torch.nn.Conv2d(16, 32, 3, stride=2),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(32 * 7 * 7, 10),
    )
    optimizer = torch.optim.Adam(model.parameters())
    while True:
        for images, labels in loader:
            with watch(model):
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(images), labels).backward()
                optimizer.step()
            yield


def _python(_: Watch) -> Iterator[None]:
    """Count in plain Python."""
    while True:
        sum(number * number % 7 for number in range(10_000))
        yield


def _numpy(_: Watch) -> Iterator[None]:
    """Multiply and bend matrices that fit the cache."""
    import numpy as np

    matrix = np.random.default_rng(1).random((200, 200))
    while True:
        np.tanh(matrix @ matrix.T / 200)
        yield


_PROGRAMS = {"training": _training, "python": _python, "numpy": _numpy}


@contextlib.contextmanager
def _peer(name: str) -> Iterator[Watch]:
    """Bring in the peers that want to be called by the program."""
    if name == "traceml":
        import traceml_ai

        traceml_ai.init(mode="auto")
        yield traceml_ai.trace_step
    elif name.startswith("torch.profiler"):
        from torch import profiler

        schedule = None
        if name.endswith("scheduled"):
            schedule = profiler.schedule(wait=5, warmup=1, active=3)
        with (
            tempfile.TemporaryDirectory() as traces,
            profiler.profile(
                activities=[profiler.ProfilerActivity.CPU],
                schedule=schedule,
                on_trace_ready=profiler.tensorboard_trace_handler(traces) if schedule else None,
            ) as profile,
        ):

            @contextlib.contextmanager
            def watch(_: Any) -> Iterator[None]:
                yield
                profile.step()

            yield watch if schedule else nullcontext
    else:
        yield nullcontext


def _rate(steps: Iterator[None], seconds: float) -> float:
    """Return steps a second of the next seconds."""
    count, began_s = 0, time.perf_counter()
    while (elapsed_s := time.perf_counter() - began_s) < seconds:
        next(steps)
        count += 1
    return count / elapsed_s


def _windows(steps: Iterator[None], count: int, window_s: float) -> dict[str, Any]:
    """Return what the sampler of stacks costs, and what nothing costs, by window [%].

    It is stopped in every other window, and of those between it goes on in a half.
    """
    spool = Path(os.environ["TEHO_PROBE"])
    while not list(spool.glob(f"{os.getpid()}-*.seen")):
        next(steps)
    reader = int((spool / "reader").read_text(encoding="ascii"))
    between = ["awake", "again"] * (count // 2)
    random.Random(1).shuffle(between)
    states = ["stopped", *itertools.chain(*((one, "stopped") for one in between))]
    rates = []
    for state in states:
        os.kill(reader, signal.SIGCONT if state == "awake" else signal.SIGSTOP)
        rates.append(_rate(steps, window_s))
    os.kill(reader, signal.SIGCONT)
    lost: dict[str, list[float]] = {"awake": [], "again": []}
    for place, state in enumerate(states):
        if state != "stopped":
            around = (rates[place - 1] + rates[place + 1]) / 2
            lost[state].append(100 * (around / rates[place] - 1) / _DOSE)
    return lost


def _hooks() -> float:
    """Return the time of a step in which nearly nothing is done, the least of many [s]."""
    import torch

    loader = torch.utils.data.DataLoader(range(200), batch_size=None)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))])
    least_s = float("inf")
    for _ in range(100):
        began_s = time.perf_counter()
        for _ in loader:
            optimizer.step()
        least_s = min(least_s, (time.perf_counter() - began_s) / 200)
    return least_s


def _main(program: str, result: str, *what: str) -> None:
    told: dict[str, Any] = {"pid": os.getpid()}
    if program == "hooks":
        told["step_s"] = _hooks()
    else:
        is_windows = what[0] == "windows"
        with _peer("" if is_windows else what[1]) as watch:
            steps = _PROGRAMS[program](watch)
            windows, length_s = (
                (int(what[1]), float(what[2])) if is_windows else (1, float(what[0]))
            )
            _rate(steps, min(_MOST_WARM_UP_S, windows * length_s))
            if is_windows:
                told |= _windows(steps, windows, length_s)
            else:
                told["steps_per_s"] = _rate(steps, length_s)
        if what[2:] == ("hooks",):
            told["step_s"] = _hooks()
    Path(result).write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    _main(*sys.argv[1:])
