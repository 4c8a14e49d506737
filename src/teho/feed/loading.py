"""`loader`: a DataLoader whose workers are chosen for the dataset and the job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import torch

from teho.errors import InputError
from teho.feed.arguments import PROCESSES_ONLY, check_arguments
from teho.feed.arrays import arrays_of, numbered
from teho.feed.epochs import Epochs, Feed
from teho.feed.given import Given
from teho.feed.probing import measured
from teho.feed.proved import proved_settings
from teho.feed.room import cores
from teho.feed.shards import Packed
from teho.feed.streams import Stream, is_stream
from teho.feed.workers import Fetch, checked, in_threads
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
    dataset = numbered(dataset)
    check_arguments(
        is_stream=is_stream(dataset), batch_size=batch_size, shuffle=shuffle, sampler=sampler,
        batch_sampler=batch_sampler, num_workers=num_workers, drop_last=drop_last, threads=threads,
        divided=divided, options=options,
    )  # fmt: skip
    if batch_sampler is not None:
        source: Any = Given(batch_sampler)
    elif sampler is not None:
        source = Given(torch.utils.data.BatchSampler(sampler, _size(batch_size), drop_last))
    elif is_stream(dataset):
        source = Stream(dataset, batch_size, drop_last, divided, num_workers, (rank, world_size))
    else:
        if isinstance(dataset, Packed):
            dataset = dataset.in_blocks()
        arrays = None if collate_fn else arrays_of(dataset)
        source = Epochs(
            arrays.samples if arrays else len(dataset), _size(batch_size), shuffle, drop_last, seed,
            rank, world_size, order=dataset.order if isinstance(dataset, Packed) else None,
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
        super().__init__(dataset, source.batch_size, drop_last=source.drop_last)
        self._source = source
        self._num_workers, self._threads = num_workers, threads
        self._pins = torch.cuda.is_available() if pin_memory is None else pin_memory
        self._collate_fn, self._options = collate_fn, options
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

    def state_dict(self) -> dict[str, Any]:
        """Return the position: after the last batch that was given."""
        state = super().state_dict()
        if isinstance(self._source, Given):
            state["order"] = self._source.sum_before(self.batch)
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Let the next iteration continue at a saved position.

        Raises:
            InputError: the state is for other data, another batch size or other ranks.
        """
        super().load_state_dict(state)
        if isinstance(self._source, Given):
            self._source.expect(state["batch"], state["order"])

    def batches(self, epoch: int, first: int) -> Iterator[Any]:
        """Yield the batches of an epoch, from a batch on."""
        arrays = arrays_of(self.dataset) if self.choice.kind == "memory" else None
        if arrays:
            where = arrays.leaves[0].device
            pins = self._pins and where.type == "cpu"
            for group in self._source.groups(epoch, first, where):
                yield from arrays.batches(*group, pins=pins)
            return
        if self._load is None:
            self._load = self._made(self.choice)
        try:
            yield from self._load(self._source.lists(epoch, first))
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
        number = proved.pop("num_workers", None)
        self._options = {**proved, **self._options}
        if number is not None:
            return Choice("processes" if number else "main", number, "proved by `teho tune`")
        workers = self._num_workers or cores()
        if self._threads is not None:
            return Choice("threads" if self._threads else "processes", workers)
        return self._measured_choice(workers)

    def _measured_choice(self, workers: int) -> Choice:
        context = self._options.get("multiprocessing_context")
        if not hasattr(context, "Process"):
            context = torch.multiprocessing.get_context(context)
        for name in PROCESSES_ONLY:
            if self._options.get(name):
                return Choice("processes", workers, name)
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
        collate = self._collate_fn or torch.utils.data.default_collate
        fetch = Fetch(self.dataset, collate, self._pins)
        if choice.kind == "threads":
            ahead = choice.workers * (self._options.get("prefetch_factor") or _AHEAD)
            return lambda rows: in_threads(fetch, rows, choice.workers, ahead)
        options = {"collate_fn": collate, "pin_memory": self._pins, **self._options}
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
