"""How a dataset loads: how long a sample takes, and whether threads may load it.

The measurement runs in a process of its own. The dataset may open files when it loads its first
sample, and worker processes that are forked later must not share these files.
"""

from __future__ import annotations

import io
import pickle
import random
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from teho.feed.tree import equal, flat

__all__ = ["Loading", "measured"]

_ROWS = 32
_SECONDS = 0.1
"""Time for loading the samples once. They are loaded six times."""
_PATIENCE_S = 20.0
_THREADS = 2
_SHARED_HANDLES = ("h5py", "zipfile", "tarfile", "sqlite3", "lmdb", "mmap", "netCDF4")
"""Modules whose objects have a position or a state that threads would share."""


class Loading(NamedTuple):
    """How samples of a dataset load."""

    sample_s: float
    """Time to load one sample, in s."""
    threads_speed_up: float
    """Of two threads over one; 0: threads must not load these samples."""
    why_no_threads: str
    """Why; empty if threads may load them."""
    is_repeatable: bool
    """Whether a sample is the same each time, and loading it uses no random numbers."""


def measured(dataset: Any, context: Any) -> Loading | None:
    """Measure a dataset in a new process; None if this fails or takes longer than 20 s.

    Args:
        dataset: with `__getitem__` and `__len__`.
        context: of multiprocessing, as for the workers.
    """
    if not len(dataset):
        return None
    here, there = context.Pipe(duplex=False)
    # From the whole dataset, if it is not read in blocks.
    step = 1 if hasattr(dataset, "in_blocks") else -(-len(dataset) // _ROWS)
    rows = range(0, len(dataset), step)[:_ROWS]
    process = context.Process(target=_report, args=(dataset, rows, there))
    process.daemon = True
    try:
        process.start()
    except (pickle.PicklingError, AttributeError, TypeError, OSError):
        return None
    there.close()
    found = None
    with suppress(EOFError):
        if here.poll(_PATIENCE_S):
            found = Loading(*here.recv())
    process.kill()
    process.join()
    return found


def _report(dataset: Any, rows: Sequence[int], there: Any) -> None:
    import torch

    # As in a worker: more threads inside would compete with the other workers.
    torch.set_num_threads(1)
    # An error is left to the workers: they show it with its sample.
    with suppress(Exception):
        there.send(tuple(_measure(dataset, rows)))


def _measure(dataset: Any, rows: Sequence[int]) -> Loading:
    # The first load can be slow and may open files; this is not a change of the later loads.
    first = dataset[rows[0]]
    before, randomness = _attributes(dataset), _randomness()
    samples: list[Any] = []
    ticks_s = [time.perf_counter()]
    for row in rows:
        samples.append(dataset[row])
        ticks_s.append(time.perf_counter())
        if ticks_s[-1] - ticks_s[0] > _SECONDS:
            break
    # Not the mean: other programs may interrupt this one.
    sample_s = median(end - begin for begin, end in pairwise(ticks_s))
    is_repeatable = equal(first, samples[0]) and all(
        equal(sample, dataset[row]) for sample, row in zip(samples, rows, strict=False)
    )
    # By chance, two random changes can be equal.
    is_repeatable = is_repeatable and all(map(equal, randomness, _randomness()))
    if why := _why_no_threads(dataset, before, is_repeatable=is_repeatable):
        return Loading(sample_s, 0.0, why, is_repeatable)
    times: dict[int, list[float]] = {1: [], _THREADS: []}
    for count in (1, _THREADS) * 2:
        began_s = time.perf_counter()
        with ThreadPoolExecutor(count) as pool:
            again = list(pool.map(dataset.__getitem__, rows[: len(samples)]))
        times[count].append(time.perf_counter() - began_s)
        if not all(map(equal, samples, again)):
            return Loading(sample_s, 0.0, "two threads loaded other values", is_repeatable)
    return Loading(sample_s, min(times[1]) / min(times[_THREADS]), "", is_repeatable)


def _why_no_threads(dataset: Any, before: dict[str, int], *, is_repeatable: bool) -> str:
    if not is_repeatable:
        return "loading uses random numbers, and each worker process has its own"
    if getattr(dataset, "is_thread_safe", False):
        return ""
    if _attributes(dataset) != before:
        return "loading changes the dataset"
    if shared := _handle_in(dataset):
        return f"the dataset keeps {shared} open"
    return ""


def _attributes(dataset: Any) -> dict[str, int]:
    return {name: id(value) for name, value in getattr(dataset, "__dict__", {}).items()}


def _randomness() -> list[Any]:
    """Return the states of the random numbers of Python, PyTorch and NumPy."""
    import torch

    numpy: Any = sys.modules.get("numpy")
    states = [random.getstate(), torch.get_rng_state()]
    return [*states, *([numpy.random.get_state()] if numpy else [])]


def _handle_in(dataset: Any) -> str:
    """Return the type of an open file in the dataset or in what it contains; empty: none."""
    todo, seen = [dataset], 0
    while todo and seen < 1000:
        value = todo.pop()
        seen += 1
        module = type(value).__module__.partition(".")[0]
        if isinstance(value, io.IOBase) or module in _SHARED_HANDLES:
            return f"{type(value).__module__}.{type(value).__qualname__}"
        if callable(value):
            continue
        inner = getattr(value, "__dict__", None)
        todo += list(inner.values()) if isinstance(inner, dict) else []
        if isinstance(value, (list, tuple, dict)) and len(value) < 100:
            todo += flat(value)[0]
    return ""
