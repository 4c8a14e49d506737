"""Where a Python program's time goes: from stacks to what its main thread was doing."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from teho.model.program import Doing, Spent
from teho.model.watched import Frame, Seen, State, WatchedProcess, is_library

__all__ = ["doing_of", "main_process", "most_of", "own_frame", "spent_by"]

_LINES = 3
"""Lines of the program that are told for each thing it did."""

# What is on a stack tells what for, whoever called it: the first that fits. A stack is looked
# at from the outside in, so that a file which is imported to save something is still saving.
_BY_PLACE = (
    (Doing.LOADING, re.compile(r"torch/utils/data/|tensorflow/python/data/|datasets/iterable_")),
    (
        Doing.COMMUNICATING,
        # Others of its files are on the stack of all that they wrap, `record` for example.
        re.compile(
            r"torch/distributed/(distributed_c10d|_functional_coll|rendezvous)|horovod/|mpi4py/"
        ),
    ),
    (
        Doing.COMPILING,
        re.compile(
            r"torch/_(dynamo|inductor|functorch)/|jax/_src/compiler|numba/core/|cupy/cuda/compiler"
            # What was compiled is called, and its arguments are copied, from there too.
            r"|jax/_src/interpreters/"
            r"(?!pxla\.py:((\w+\.)?(__)?call(__)?|_?shard_\w+|batched_device_put)\b)"
        ),
    ),
    (
        Doing.SAVING,
        re.compile(
            r"(torch/serialization\.py|torch/distributed/checkpoint/|safetensors/|orbax/"
            r"|numpy/lib/\w*npyio).*:.*save"
        ),
    ),
    (Doing.IMPORTING, re.compile(r"<frozen importlib\._bootstrap")),
    # These are written in Python: the call into C below them does not show it.
    (
        Doing.COPYING,
        re.compile(
            r"cupy/_creation/from_data\.py:\w*array$"
            r"|jax/_src/interpreters/pxla\.py:(shard_args|batched_device_put)$"
        ),
    ),
    (
        Doing.DEVICE,
        re.compile(r"cupy/__init__\.py:asnumpy$|jax/_src/array\.py:(ArrayImpl\.)?_value$"),
    ),
)
_OUTSIDE = "<python>"
"""Stands for the file of a stack without any function."""
# Calls into C have no frame of their own: the text of the innermost one names them.
_BY_CALL = (
    (
        Doing.DEVICE,
        re.compile(r"\.(item|cpu|tolist|block_until_ready|asnumpy)\(|synchronize\(|asnumpy\("),
    ),
    (Doing.COPYING, re.compile(r"\.(to|cuda|pin_memory)\(|device_put\(|cupy\.(asarray|array)\(")),
    (Doing.COMMUNICATING, re.compile(r"\.(allreduce|all_reduce|bcast|Allreduce|Bcast|barrier)\(")),
    (Doing.SAVING, re.compile(r"\b(torch|np|numpy|jnp)\.save\w*\(|pickle\.dump\(")),
)
_OF_DEVICES = frozenset((Doing.DEVICE, Doing.COPYING))
_BY_STATE = {
    State.PYTHON: Doing.PYTHON,
    State.NATIVE: Doing.NATIVE,
    State.THREADS: Doing.THREADS,
    State.DEVICE: Doing.DEVICE,
    State.PROCESS: Doing.PROCESS,
    State.LOCK: Doing.LOCK,
    State.DISK: Doing.DISK,
    State.NETWORK: Doing.NETWORK,
    State.SLEEPING: Doing.SLEEPING,
    State.CORE: Doing.CORE,
    State.WAITING: Doing.WAITING,
}


# A replica's gradients are added up with those of others below these calls, in other threads.
_ADDING_UP = re.compile(r"\.backward\(|\bbackward\(|\.step\(")
_WAITS = frozenset((State.LOCK, State.PROCESS, State.NETWORK))


def doing_of(seen: Seen, *, has_device: bool = True, has_ranks: bool = False) -> Doing:
    """Return what a stack was doing.

    Args:
        seen: the stack.
        has_device: whether there is one to wait for; if not, `.item()` is a call like others.
        has_ranks: whether there are other ranks, for which `.backward()` may wait.

    By the libraries' functions on it; by the call that was going on; by what the thread did then,
    as the kernel and the interpreter have it.
    """
    excluded = frozenset() if has_device else _OF_DEVICES
    for frame in reversed(seen.frames):
        place = f"{frame.file}:{frame.function}"
        for doing, pattern in _BY_PLACE:
            if doing not in excluded and pattern.search(place):
                return doing
    innermost = seen.frames[0] if seen.frames else None
    if innermost and innermost.file == _OUTSIDE:
        return Doing.ENDING
    if innermost:
        for doing, pattern in _BY_CALL:
            if doing not in excluded and pattern.search(innermost.text):
                return doing
    adds_up = has_ranks and any(_ADDING_UP.search(frame.text) for frame in seen.frames)
    if adds_up and seen.state in _WAITS:
        return Doing.COMMUNICATING
    return _BY_STATE[seen.state]


def spent_by(process: WatchedProcess) -> list[Spent]:
    """Divide the time of a process by what it was doing, most first; it adds up to all of it."""
    walls: dict[Doing, float] = defaultdict(float)
    lines: dict[Doing, dict[tuple[str, int], tuple[Frame, float]]] = defaultdict(dict)
    for seen in process.stacks:
        doing = doing_of(
            seen, has_device=process.may_use_device, has_ranks=process.is_one_of_several
        )
        walls[doing] += seen.wall_s
        frame = own_frame(seen.frames)
        if frame:
            key = (frame.file, frame.line)
            first, wall_s = lines[doing].get(key, (frame, 0.0))
            lines[doing][key] = first, wall_s + seen.wall_s
    return [
        Spent(doing=doing, wall_s=wall_s, lines=most_of(list(lines[doing].values())))
        for doing, wall_s in sorted(walls.items(), key=lambda pair: -pair[1])
    ]


def own_frame(frames: Sequence[Frame]) -> Frame | None:
    """Return the innermost function that is the user's own, and not of a library."""
    return next((frame for frame in frames if not is_library(frame.file)), None)


def most_of(lines: Sequence[tuple[Frame, float]]) -> tuple[tuple[Frame, float], ...]:
    """Return the few lines that took the most time, most first."""
    return tuple(sorted(lines, key=lambda pair: -pair[1])[:_LINES])


def main_process(processes: Sequence[WatchedProcess]) -> WatchedProcess | None:
    """Return the process that does the program's work: the one whose main thread worked most.

    A launcher such as torchrun waits for its children, and loader workers wait to be asked.
    """
    return max(processes, key=lambda process: process.ran_s, default=None)
