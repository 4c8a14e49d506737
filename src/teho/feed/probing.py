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
from functools import partial
from math import ceil
from operator import sub
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import torch

from teho.feed.shards import Packed
from teho.feed.tree import equal, flat

__all__ = ["Loading", "measured"]

_ROWS = 32
_SECONDS = 0.15
"""Shortest time for loading the samples with one thread."""
_PATIENCE_S = 20.0
_ROUNDS = 5
_MOST_TIMES = 100
_SHARED_HANDLES = ("h5py", "zipfile", "tarfile", "sqlite3", "lmdb", "mmap", "netCDF4")
"""Modules whose objects have a position or a state that threads would share."""


class Loading(NamedTuple):
    """How samples of a dataset load."""

    sample_s: float
    """Time to load one sample, in s."""
    threads_speed: float
    """Speed-up of the threads over one thread, for each thread; 0: they must not be used."""
    why_no_threads: str
    """Why; empty if threads may load them."""
    is_repeatable: bool
    """Whether a sample is the same each time, and loading it uses no random numbers."""


def measured(dataset: Any, workers: int, context: Any) -> Loading | None:
    """Measure a dataset in a new process; None if this fails or takes longer than 20 s.

    Args:
        dataset: with `__getitem__` and `__len__`.
        workers: number of threads.
        context: of multiprocessing, as for the workers.
    """
    if not len(dataset):
        return None
    here, there = context.Pipe(duplex=False)
    # From the whole dataset, if it is not read in blocks.
    step = 1 if isinstance(dataset, Packed) else -(-len(dataset) // _ROWS)
    rows = range(0, len(dataset), step)[:_ROWS]
    process = context.Process(target=_report, args=(dataset, rows, workers, there))
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


def _report(dataset: Any, rows: Sequence[int], workers: int, there: Any) -> None:
    # As in a worker: more threads inside would compete with the other workers.
    torch.set_num_threads(1)
    # An error is left to the workers: they show it with its sample.
    with suppress(Exception):
        there.send(tuple(_measure(dataset, rows, workers)))


def _measure(dataset: Any, rows: Sequence[int], workers: int) -> Loading:
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
    sample_s = median(map(sub, ticks_s[1:], ticks_s))
    rows = rows[: len(samples)]
    # The kernel's times are exact to some milliseconds: load the samples more than once.
    times = max(1, min(_MOST_TIMES, ceil(_SECONDS / sum(map(sub, ticks_s[1:], ticks_s)))))
    again, work_s = _load(dataset, rows, times)
    work_s = min(work_s, _load(dataset, rows, times)[1])
    # By chance, two random changes can be equal.
    is_repeatable = (
        equal(first, samples[0])
        and equal(samples, again)
        and all(map(equal, randomness, _randomness()))
    )
    if why := _why_no_threads(dataset, before, is_repeatable=is_repeatable):
        return Loading(sample_s, 0.0, why, is_repeatable)
    shares = [rows[first::workers] for first in range(workers)]
    speed_up = 0.0
    for _ in range(_ROUNDS):
        began_s = time.perf_counter()
        with ThreadPoolExecutor(workers) as pool:
            loads = list(pool.map(partial(_load, dataset, times=times), shares))
        # The best round counts: with Python's lock, threads are never faster than one thread.
        speed_up = max(speed_up, work_s / (time.perf_counter() - began_s))
        if not all(equal(samples[one::workers], own[0]) for one, own in enumerate(loads)):
            return Loading(sample_s, 0.0, "several threads loaded other values", is_repeatable)
    return Loading(sample_s, speed_up / workers, "", is_repeatable)


def _load(dataset: Any, rows: Sequence[int], times: int) -> tuple[list[Any], float]:
    """Load samples; return them, and the time in s without waiting for a free core.

    Raises:
        OSError: this kernel does not report these times.
    """
    schedule = Path("/proc/thread-self/schedstat")
    began_s, before = time.perf_counter(), schedule.read_text(encoding="ascii").split()
    for _ in range(times):
        samples = [dataset[row] for row in rows]
    elapsed_s, after = time.perf_counter() - began_s, schedule.read_text(encoding="ascii").split()
    queued_s = (int(after[1]) - int(before[1])) / 1e9
    return samples, elapsed_s - queued_s


def _why_no_threads(dataset: Any, before: dict[str, int], *, is_repeatable: bool) -> str:
    if not is_repeatable:
        return "loading uses random numbers, and each worker process has its own"
    if isinstance(dataset, Packed):
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
