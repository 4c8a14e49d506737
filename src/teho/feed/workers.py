"""Threads and worker processes that load batches in advance."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import chain
from threading import Lock
from typing import Any, NamedTuple

import torch

from teho.errors import TehoError
from teho.feed.tree import mapped

__all__ = ["Fetch", "ahead", "checked", "in_threads"]

_PARTS = 4
"""Parts of a batch that threads load at the same time. With whole batches, some threads would have
no work at the end of an epoch."""


class Fetch(NamedTuple):
    """Makes a batch, as a worker of DataLoader does."""

    dataset: Any
    collate: Callable[[Any], Any]
    pins: bool
    """Whether the batch is in pinned memory."""

    @property
    def is_whole(self) -> bool:
        """Whether the dataset loads all samples of a batch itself."""
        return bool(getattr(self.dataset, "__getitems__", None))

    def samples(self, rows: list[int]) -> Any:
        """Load some samples of a batch; all of them if `is_whole`."""
        dataset = self.dataset
        return dataset.__getitems__(rows) if self.is_whole else [dataset[row] for row in rows]

    def batch(self, samples: Any) -> Any:
        """Put a batch together."""
        made = self.collate(samples)
        return mapped(_pinned, made) if self.pins else made

    def __call__(self, rows: list[int]) -> Any:
        """Return a batch."""
        return self.batch(self.samples(rows))


def _pinned(leaf: Any) -> Any:
    is_on_device = isinstance(leaf, torch.Tensor) and leaf.device.type != "cpu"
    return leaf if is_on_device or not hasattr(leaf, "pin_memory") else leaf.pin_memory()


def ahead(
    pool: Executor, begin: Callable[[Any], Any], items: Iterable[Any], count: int
) -> Iterator[Any]:
    """Yield the results of the work on each item, while the next ones are worked on.

    Args:
        pool: of the work. It ends when the iteration ends.
        begin: starts the work on an item. What it returns has `result()`.
        items: what is worked on.
        count: number of items whose work begins in advance.
    """
    waiting: deque[Any] = deque()
    try:
        for item in items:
            waiting.append(begin(item))
            if len(waiting) > count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def in_threads(fetch: Fetch, rows: Iterable[list[int]], workers: int, count: int) -> Iterator[Any]:
    """Yield the batches in their order. An error in a thread is raised with its traceback.

    Args:
        fetch: makes a batch.
        rows: the numbers of the samples of each batch.
        workers: number of threads.
        count: number of batches that are loaded in advance.
    """
    pool = ThreadPoolExecutor(workers, "teho-feed")
    return ahead(pool, partial(_Shared, pool, fetch), rows, count)


class _Shared:
    """A batch whose samples several threads load. The last of them puts it together."""

    def __init__(self, pool: Executor, fetch: Fetch, rows: list[int]) -> None:
        self._fetch, self._lock = fetch, Lock()
        size = max(1, len(rows) if fetch.is_whole else -(-len(rows) // _PARTS))
        parts = [rows[first : first + size] for first in range(0, len(rows), size)] or [rows]
        self._samples: list[Any] = [None] * len(parts)
        self._missing = len(parts)
        self._batch: Any = None
        self._parts = [pool.submit(self._load, *part) for part in enumerate(parts)]

    def _load(self, number: int, rows: list[int]) -> None:
        self._samples[number] = self._fetch.samples(rows)
        with self._lock:
            self._missing -= 1
            is_last = not self._missing
        if is_last:
            one = self._samples
            self._batch = self._fetch.batch(one[0] if len(one) == 1 else [*chain(*one)])

    def result(self) -> Any:
        """Wait for the batch, and return it."""
        for part in self._parts:
            part.result()
        return self._batch


def checked(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the batches of a DataLoader; if a worker was killed, say what to do.

    After an error, the workers have ended.

    Raises:
        TehoError: a worker was killed.
    """
    try:
        yield from batches
    except Exception as error:
        # Otherwise the workers would stay until the garbage collector finds their iterator. It then
        # waits up to 5 s for each worker, and PyTorch raises the error of a killed worker again.
        with suppress(RuntimeError):
            getattr(batches, "_shutdown_workers", lambda: None)()
        text = str(error).strip(" .")
        # An error of the dataset has the traceback of its worker in its text.
        is_lost = isinstance(error, (ConnectionError, EOFError)) and "Caught " not in text
        is_killed = "exited unexpectedly" in text or "killed by signal" in text
        if not is_lost and not (isinstance(error, RuntimeError) and is_killed):
            raise
        raise TehoError(
            f"a worker process of the loader was killed ({text})",
            "",
            "see in `teho report` whether the memory was full, or use fewer workers: num_workers=1",
        ) from error
