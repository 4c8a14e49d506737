"""Tries and result of `teho tune --find batch-size`."""

from __future__ import annotations

from typing import Literal, Union

import msgspec

from teho.model.tuned import Change

__all__ = ["SCHEMA", "BatchSizes", "BatchTry", "Ended", "Limit", "MemoryUse"]

SCHEMA = "teho.batch_sizes/1"
"""Name and version of the JSON form; an incompatible change raises the number."""

Ended = Literal["fits", "out_of_memory", "dataset", "failed", "too_slow"]
"""How a run with one batch size ended: `fits`: it made at least two steps; `dataset`: the dataset
has fewer samples than the batch; `failed`: for another reason than memory; `too_slow`: it made
fewer than two steps within its time limit."""


Limit = Literal["memory", "dataset", "failed", "too_slow", "time", "interrupt"]
"""What ends a search: larger batches run out of memory, the dataset has no more samples, a batch
fails for another reason or is too slow, the time is over, or the user."""


class MemoryUse(msgspec.Struct, frozen=True, kw_only=True):
    """Highest memory of a run. A figure that was not measured is null."""

    host_bytes: Union[int, None] = None
    """Of all processes of the program together; files are not included."""
    process_limit_bytes: Union[int, None] = None
    """Limit for the memory of each process (`ulimit -d` or `ulimit -v`); null also without one."""
    gpu_bytes: Union[int, None] = None
    """Of the program's processes on one GPU: the GPU that they filled the most."""
    gpu_used_bytes: Union[int, None] = None
    """Of all programs on this GPU."""
    gpu_total_bytes: Union[int, None] = None
    """Size of this GPU's memory."""


class BatchTry(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the program with one batch size."""

    batch_size: int
    """Of one process."""
    ended: Ended
    memory: MemoryUse
    """Null figures if the batch does not fit: its peak is not known."""
    samples_per_s: Union[float, None] = None
    """Of all processes together; null if the run had no steady step rate."""
    why: str = ""
    """Why it does not fit, or why its speed is not known."""


class BatchSizes(msgspec.Struct, frozen=True, kw_only=True):
    """The largest batch that fits, the fastest batch, and all tries."""

    schema: str = SCHEMA
    command: tuple[str, ...]
    """As typed, secrets masked."""
    outcome: Literal["found", "unproved"]
    """`unproved`: the search ended before the largest batch was found."""
    verdict: str
    """The most important sentence."""
    ended_by: Limit
    """What ended the search."""
    own: int
    """The program's own batch size."""
    largest: Union[int, None] = None
    """The largest batch that was tried and fits; null: none."""
    fastest: Union[int, None] = None
    """The smallest batch with at most 5 % fewer samples/s than the best, in one run of each; null:
    not known."""
    processes: int = 1
    """Number of processes that train, each with its own batches."""
    memory_limit_bytes: Union[int, None] = None
    """Memory of the host that the job may use."""
    changes: tuple[Change, ...] = ()
    tries: tuple[BatchTry, ...]
    """In the order of the runs; the first is the unchanged program."""
    notes: tuple[str, ...] = ()
    """Remarks on the figures, one sentence each."""
    elapsed_s: float
