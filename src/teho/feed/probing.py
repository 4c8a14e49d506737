"""How a dataset loads: how long a sample takes, and whether threads may load it.

The measurement runs in a process of its own. The dataset may open files when it loads its first
sample, and worker processes that are forked later must not share these files.
"""

from __future__ import annotations

import io
import os
import pickle
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from teho.feed.tree import equal, flat
from teho.process.child import fork_child

__all__ = ["Loading", "measured"]

_ROWS = 32
_SECONDS = 0.1
"""Time for loading the samples once, one after another."""
_PATIENCE_S = 20.0
_ROUNDS = 3
_SHARED_HANDLES = ("h5py", "zipfile", "tarfile", "sqlite3", "lmdb", "mmap", "netCDF4")
"""Modules whose objects have a position or a state that threads would share."""


class Loading(NamedTuple):
    """How samples of a dataset load."""

    sample_s: float
    """Time to load one sample, in s."""
    threads_speed: float
    """Of the workers as threads, divided by their speed as processes; 0: they cannot be threads."""
    why_no_threads: str
    """Why; empty if threads may load them."""
    is_repeatable: bool
    """Whether a sample is the same each time, and loading it uses no random numbers."""


def measured(dataset: Any, workers: int, context: Any) -> Loading | None:
    """Measure a dataset in a new process; None if this fails or takes longer than 20 s.

    Args:
        dataset: with `__getitem__` and `__len__`.
        workers: number of threads or processes to compare.
        context: of multiprocessing, as for the workers.
    """
    if not len(dataset):
        return None
    here, there = context.Pipe(duplex=False)
    # From the whole dataset, if it is not read in blocks.
    step = 1 if hasattr(dataset, "in_blocks") else -(-len(dataset) // _ROWS)
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
    import torch

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
    sample_s = median(end - begin for begin, end in pairwise(ticks_s))
    is_repeatable = equal(first, samples[0]) and all(
        equal(sample, dataset[row]) for sample, row in zip(samples, rows, strict=False)
    )
    # By chance, two random changes can be equal.
    is_repeatable = is_repeatable and all(map(equal, randomness, _randomness()))
    if why := _why_no_threads(dataset, before, is_repeatable=is_repeatable):
        return Loading(sample_s, 0.0, why, is_repeatable)
    rows = rows[: len(samples)]
    shares = [rows[first::workers] for first in range(min(workers, len(rows)))]
    with _helpers(dataset, shares) as load_all:
        times: dict[bool, list[float]] = {True: [], False: []}
        for in_threads in (True, False) * _ROUNDS:
            began_s = time.perf_counter()
            if in_threads:
                with ThreadPoolExecutor(len(shares)) as pool:
                    again = list(pool.map(partial(_load, dataset), shares))
            else:
                load_all()
            times[in_threads].append(time.perf_counter() - began_s)
            wanted = [samples[first :: len(shares)] for first in range(len(shares))]
            if in_threads and not all(map(equal, wanted, again)):
                return Loading(sample_s, 0.0, "several threads loaded other values", is_repeatable)
    return Loading(sample_s, min(times[False]) / min(times[True]), "", is_repeatable)


def _load(dataset: Any, rows: Sequence[int]) -> list[Any]:
    return [dataset[row] for row in rows]


@contextmanager
def _helpers(dataset: Any, shares: Sequence[Sequence[int]]) -> Iterator[Callable[[], None]]:
    """Fork a process for each share but the first; yield what loads all shares at the same time.

    The processes end with this process.
    """
    pipes = [os.pipe() for _ in shares[1:]]
    finished, done = os.pipe()

    def help_out(share: Sequence[int], own: int) -> None:
        for _, end in pipes:  # else, the pipe would stay open without its writer
            os.close(end)
        while os.read(own, 1):
            _load(dataset, share)
            os.write(done, b"1")

    def load_all() -> None:
        for _, end in pipes:
            os.write(end, b"1")
        _load(dataset, shares[0])
        for _ in pipes:
            os.read(finished, 1)

    each = zip(shares[1:], pipes, strict=True)
    pids = [fork_child(partial(help_out, share, own)) for share, (own, _) in each]
    try:
        yield load_all
    finally:
        for _, end in pipes:
            os.close(end)
        for pid in pids:
            os.waitpid(pid, 0)


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
