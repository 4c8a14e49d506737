"""`loader`: a DataLoader whose workers are chosen for the dataset and the job."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from teho.errors import InputError, TehoError
from teho.feed.arrays import Arrays, arrays_of
from teho.feed.epochs import Epochs, Feed
from teho.feed.probing import measured
from teho.feed.proved import proved_settings
from teho.feed.room import cores
from teho.feed.shards import Packed
from teho.feed.streams import Stream, is_stream, streamed
from teho.feed.tree import mapped
from teho.units import counted

__all__ = ["Loader", "loader"]

_THREADS_FAST = 0.6
"""Speed-up for each thread from which on threads are used: otherwise they wait for Python's lock.
Processes would be faster, although they have to hand over each batch."""
_HANDOVER_S = 0.0005
"""About the time in s in which the main process receives a batch from a worker process."""
_AHEAD = 2
"""Batches that each worker loads in advance, as in DataLoader."""


class Choice(NamedTuple):
    """How batches are loaded."""

    kind: str
    """`memory`, `main` (in the main process), `threads` or `processes`."""
    workers: int = 0
    why: str = ""


def loader(
    dataset: Any,
    batch_size: int | None = 1,
    shuffle: bool = False,  # noqa: FBT001, FBT002 - as in DataLoader
    sampler: Iterable[int] | None = None,
    batch_sampler: Iterable[list[int]] | None = None,
    num_workers: int | None = None,
    collate_fn: Callable[[list[Any]], Any] | None = None,
    pin_memory: bool | None = None,  # noqa: FBT001 - as in DataLoader
    drop_last: bool = False,  # noqa: FBT001, FBT002 - as in DataLoader
    *,
    threads: bool | None = None,
    seed: int = 0,
    rank: int | None = None,
    world_size: int | None = None,
    divided: bool | None = None,
    **options: Any,
) -> Loader:
    """Return an iterable of batches, with the arguments of PyTorch's DataLoader.

    What is not given, is chosen when the first epoch begins: arrays in memory are read by batch;
    threads load the samples if this is faster and safe; otherwise worker processes do. Each rank
    of torch.distributed gets its own part of the samples, and all ranks get the same number of
    batches. Each sample is in exactly one batch of an epoch. The position can be saved.

    Args:
        dataset: a dataset of PyTorch with `__getitem__` or `__iter__`, the result of `packed`, or
            arrays.
        batch_size: samples in a batch of each rank.
        shuffle: a new order in each epoch.
        sampler: gives the order and divides the samples between ranks itself.
        batch_sampler: gives whole batches.
        num_workers: number of threads or processes; 0: the main process loads. None: as `teho tune`
            has proved; otherwise one for each core of the job, divided by the ranks of the node;
            0 for a dataset with `__iter__`.
        collate_fn: makes a batch from a list of samples.
        pin_memory: whether batches are in pinned memory. None: if there is a CUDA GPU.
        drop_last: leave out the last samples if they do not fill a batch on each rank.
        threads: whether threads load instead of processes. None: chosen.
        seed: of the order.
        rank: of this process. None: as torch.distributed says.
        world_size: number of ranks. None: the same.
        divided: for a dataset with `__iter__`: whether it divides its samples between ranks and
            workers itself.
        options: other arguments of DataLoader, for worker processes. These stay for all epochs; if
            you change the dataset between epochs, give `persistent_workers=False`.

    Raises:
        InputError: an argument is not possible, or the samples cannot be divided between the ranks.
    """
    import torch

    known = inspect.signature(torch.utils.data.DataLoader.__init__).parameters
    for name in options.keys() - known.keys():
        raise InputError(f"loader has no argument {name}", "an argument of DataLoader")
    if batch_sampler is not None:
        source: Any = _Given(batch_sampler)
    elif sampler is not None:
        source = _Given(torch.utils.data.BatchSampler(sampler, _size(batch_size), drop_last))
    elif is_stream(dataset):
        source = streamed(
            dataset, batch_size, drop_last=drop_last, divided=divided, num_workers=num_workers,
            place=(rank, world_size),
        )  # fmt: skip
    else:
        if isinstance(dataset, Packed):
            dataset = dataset.in_blocks()
        arrays = None if collate_fn else arrays_of(dataset)
        source = Epochs(
            arrays.samples if arrays else len(dataset), _size(batch_size), shuffle=shuffle,
            drop_last=drop_last, seed=seed, rank=rank, world_size=world_size,
            order=dataset.order if isinstance(dataset, Packed) else None,
        )  # fmt: skip
    return Loader(dataset, source, num_workers, threads, pin_memory, collate_fn, options)


def _size(batch_size: int | None) -> int:
    if batch_size is None:
        raise InputError(
            "batch_size=None with a dataset that is read by number",
            "a number of samples",
            "batch_size=1 and your own collate_fn give single samples",
        )
    return batch_size


class Loader(Feed):
    """What `loader` returns: an iterable of batches with a position that can be saved."""

    def __init__(
        self,
        dataset: Any,
        source: Any,
        num_workers: int | None,
        threads: bool | None,  # noqa: FBT001 - only `loader` calls it
        pin_memory: bool | None,  # noqa: FBT001
        collate_fn: Callable[[list[Any]], Any] | None,
        options: dict[str, Any],
    ) -> None:
        super().__init__()
        self.dataset = dataset
        self._source = source
        self._num_workers, self._threads = num_workers, threads
        self._pin_memory, self._collate_fn, self._options = pin_memory, collate_fn, options
        self._load: Callable[[Iterator[Any]], Iterator[Any]] | None = None
        self._choice: Choice | None = None

    def __len__(self) -> int:
        return len(self._source.sizes())

    def __repr__(self) -> str:
        if self._choice is None:
            return "<teho.feed loader: not started>"
        kind, workers, why = self._choice
        nouns = {"threads": "thread", "processes": "process"}
        loads = counted(workers, nouns[kind]) if kind in nouns else kind
        return f"<teho.feed loader: {loads}{f' ({why})' if why else ''}>"

    @property
    def choice(self) -> Choice:
        """How the batches are loaded, and why."""
        if self._choice is None:
            self._choice = self._chosen()
        return self._choice

    def fixed(self) -> dict[str, Any]:
        """Return what must be the same if an epoch is continued."""
        found: dict[str, Any] = self._source.fixed()
        return found

    def batches(self, epoch: int, first: int) -> Iterator[Any]:
        """Yield the batches of an epoch, from a batch on."""
        if self._load is None:
            self._load = self._made(self.choice)
        arrays = arrays_of(self.dataset) if self.choice.kind == "memory" else None
        if arrays:
            rows = self._source.rows(epoch, first, arrays.leaves[0].device)
        else:
            rows = self._source.lists(epoch, first)
        try:
            yield from self._load(rows)
        except Exception:
            self._load = None  # the next epoch gets new workers
            raise

    # ---- how it loads ----

    def _chosen(self) -> Choice:
        if self._collate_fn is None and arrays_of(self.dataset):
            return Choice("memory")
        if self._num_workers == 0:
            return Choice("main", 0, "num_workers=0")
        if isinstance(self._source, Stream):
            return Choice("processes", self._num_workers) if self._num_workers else Choice("main")
        proved = proved_settings() if self._num_workers is self._threads is None else {}
        if proved:
            self._options = {**proved, **self._options}
            workers = self._options.pop("num_workers", 0)
            return Choice("processes" if workers else "main", workers, "proved by `teho tune`")
        workers = self._num_workers or cores()
        if self._threads is not None:
            return Choice("threads" if self._threads else "processes", workers)
        return self._measured_choice(workers)

    def _measured_choice(self, workers: int) -> Choice:
        from torch import multiprocessing

        context = self._options.get("multiprocessing_context")
        if not hasattr(context, "Process"):
            context = multiprocessing.get_context(context)
        if "worker_init_fn" in self._options:
            return Choice("processes", workers, "worker_init_fn")
        # A single thread would still share Python's lock with the training loop.
        # A single thread would still share Python's lock with the training loop.
        threads = max(2, workers)
        found = measured(self.dataset, threads, context)
        if found is None:
            return Choice("processes", workers, "not measured")
        batch_s = found.sample_s * (self._source.batch_size or float("inf"))
        if self._num_workers is None and batch_s < _HANDOVER_S:
            return Choice("main", 0, "a batch loads faster than a worker could hand it over")
        if found.why_no_threads:
            return Choice("processes", workers, found.why_no_threads)
        why = f"{threads} threads load {threads * found.threads_speed:.1f} times as fast as one"
        is_fast = found.threads_speed >= _THREADS_FAST
        return Choice("threads" if is_fast else "processes", workers, why)

    def _made(self, choice: Choice) -> Callable[[Iterator[Any]], Iterator[Any]]:
        """Return what makes batches from the rows of each batch."""
        import torch

        pins = torch.cuda.is_available() if self._pin_memory is None else self._pin_memory
        collate = self._collate_fn or torch.utils.data.default_collate
        fetch = partial(_fetched, self.dataset, collate, pins)
        arrays = arrays_of(self.dataset) if choice.kind == "memory" else None
        if arrays:
            return partial(map, partial(_taken, arrays, pins))
        if choice.kind == "threads":
            ahead = choice.workers * (self._options.get("prefetch_factor") or _AHEAD)
            return lambda rows: _in_threads(fetch, rows, choice.workers, ahead)
        options = {"collate_fn": collate, "pin_memory": pins, **self._options}
        if choice.workers:
            options = {"num_workers": choice.workers, "persistent_workers": True, **options}
        if isinstance(self._source, Stream):
            return self._source.reader(options)
        if choice.kind != "processes":
            return partial(map, fetch)
        coming = _Coming()
        made = torch.utils.data.DataLoader(self.dataset, batch_sampler=coming, **options)

        def load(rows: Iterator[Any]) -> Iterator[Any]:
            coming.rows = rows
            return checked(iter(made))

        return load


class _Coming:
    """A batch sampler for DataLoader that gives the rest of the present epoch."""

    rows: Iterator[list[int]] = iter(())

    def __iter__(self) -> Iterator[list[int]]:
        return self.rows


class _Given:
    """The batches of a sampler of the user."""

    def __init__(self, batch_sampler: Any) -> None:
        self._batch_sampler = batch_sampler
        self.batch_size: int | None = getattr(batch_sampler, "batch_size", None)

    def sizes(self) -> range:
        return range(len(self._batch_sampler))

    def fixed(self) -> dict[str, Any]:
        sampler = getattr(self._batch_sampler, "sampler", self._batch_sampler)
        return {"sampler": type(sampler).__name__}

    def rows(self, epoch: int, first: int, device: Any) -> Iterator[Any]:
        import torch

        return (torch.as_tensor(rows, device=device) for rows in self.lists(epoch, first))

    def lists(self, epoch: int, first: int) -> Iterator[list[int]]:
        for one in (self._batch_sampler, getattr(self._batch_sampler, "sampler", None)):
            if one is not None and hasattr(one, "set_epoch"):
                one.set_epoch(epoch)
        return islice(iter(self._batch_sampler), first, None)


def _pinned(leaf: Any) -> Any:
    return leaf.pin_memory() if hasattr(leaf, "pin_memory") else leaf


def _taken(arrays: Arrays, pins: bool, rows: Any) -> Any:  # noqa: FBT001 - for `partial`
    batch = arrays.rebuild(arrays.take(rows))
    return mapped(_pinned, batch) if pins else batch


def _fetched(
    dataset: Any,
    collate: Callable[[list[Any]], Any],
    pins: bool,  # noqa: FBT001 - for `partial`
    rows: list[int],
) -> Any:
    """Return one batch, as a worker of DataLoader makes it."""
    several = getattr(dataset, "__getitems__", None)
    batch = collate(several(rows) if several else [dataset[row] for row in rows])
    return mapped(_pinned, batch) if pins else batch


def _in_threads(
    fetch: Callable[[Any], Any], rows: Iterator[Any], workers: int, ahead: int
) -> Iterator[Any]:
    """Yield the batches in their order. An error in a thread is raised with its traceback."""
    waiting: deque[Future[Any]] = deque()
    pool = ThreadPoolExecutor(workers, "teho-feed")
    try:
        for some in rows:
            waiting.append(pool.submit(fetch, some))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def checked(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the batches of a DataLoader; if a worker was killed, say what to do.

    Raises:
        TehoError: a worker was killed.
    """
    try:
        yield from batches
    except (RuntimeError, ConnectionError, EOFError) as error:
        text = str(error).strip(" .")
        # An error of the dataset has the traceback of its worker in its text.
        is_lost = not isinstance(error, RuntimeError) and "Caught " not in text
        if not is_lost and "exited unexpectedly" not in text and "killed by signal" not in text:
            raise
        # PyTorch raises the same error again, anywhere, if these workers are not forgotten.
        with suppress(RuntimeError):
            getattr(batches, "_shutdown_workers", lambda: None)()
        raise TehoError(
            f"a worker process of the loader was killed ({text})",
            "",
            "look for full memory with `teho report`, or use fewer workers: num_workers=1",
        ) from error
