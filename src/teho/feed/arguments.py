"""Refuses arguments of `loader` that contradict each other."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch

from teho.errors import InputError

__all__ = ["PROCESSES_ONLY", "check_arguments"]

PROCESSES_ONLY = ("worker_init_fn", "timeout")
"""Arguments of DataLoader that have no effect on threads."""
_WORKERS_ONLY = ("multiprocessing_context", "persistent_workers", "prefetch_factor")
"""Arguments that DataLoader refuses if the main process loads."""


def check_arguments(
    *,
    is_stream: bool,
    batch_size: int | None,
    shuffle: bool,
    sampler: Any,
    batch_sampler: Any,
    num_workers: int | None,
    drop_last: bool,
    threads: bool | None,
    divided: bool | None,
    options: Mapping[str, Any],
) -> None:
    """Check the arguments of `loader`, most of them as DataLoader checks its own.

    If an argument had no effect, the user would not notice it: for example, the samples would not
    be shuffled.

    Args:
        is_stream: whether the dataset has only `__iter__`. The others are the arguments of
            `loader`.

    Raises:
        InputError: an argument is not known, or has no effect beside another one.
    """
    known = inspect.signature(torch.utils.data.DataLoader.__init__).parameters
    for name in options.keys() - known.keys():
        raise InputError(f"loader has no argument {name}", "an argument of DataLoader")
    if num_workers is not None and (not isinstance(num_workers, int) or num_workers < 0):
        raise InputError(f"num_workers={num_workers!r}", "a number of at least 0")
    _check_workers(0 if is_stream and num_workers is None else num_workers, options)
    if batch_size is None and drop_last:
        raise InputError("drop_last with batch_size=None", "a number of samples as batch_size")
    order = {
        "batch_sampler": batch_sampler is not None,
        "sampler": sampler is not None,
        "shuffle": shuffle,
    }
    if is_stream:
        for name in filter(order.__getitem__, order):
            raise InputError(
                f"{name} with a dataset that has only __iter__, and gives the order itself",
                "a dataset with __getitem__ and __len__",
                "shuffle the samples in `__iter__`, or use teho.feed.resident if all samples fit "
                "into memory",
            )
    elif divided:
        raise InputError(
            "divided=True with a dataset that has __getitem__",
            "a dataset that has only __iter__",
            "use rank=0 and world_size=1 if each rank has a dataset of its own",
        )
    decided = {**order, "drop_last": drop_last, "batch_size": batch_size not in {1, None}}
    for owner, names in (("batch_sampler", decided), ("sampler", order)):
        for name in names:
            if name not in {"batch_sampler", owner} and decided[owner] and decided[name]:
                raise InputError(f"{name} with {owner}, which decides this", "only one of them")
    if shuffle and options.get("generator") is not None:
        raise InputError(
            "generator with shuffle=True", "seed: a number that decides the order", "use seed=0"
        )
    for name in PROCESSES_ONLY:
        if threads and options.get(name):
            raise InputError(f"{name} with threads=True", "threads=False: it is for processes")


def _check_workers(num_workers: int | None, options: Mapping[str, Any]) -> None:
    """Refuse options of worker processes that have no effect, or with which samples are lost."""
    if not options.get("in_order", True):
        raise InputError(
            "in_order=False: a saved position would not say which batches the program got",
            "in_order=True",
        )
    for name in _WORKERS_ONLY:
        if num_workers == 0 and options.get(name):
            raise InputError(f"{name} with num_workers=0", f"num_workers=1, or no {name}")
