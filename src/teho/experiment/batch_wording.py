"""The result of a search for batch sizes in words, and as changes of the program's line."""

from __future__ import annotations

import math

import msgspec

from teho.experiment.attempt import Attempt
from teho.experiment.wording import changes_of
from teho.model.batch_sizes import BatchSizes, BatchTry, MemoryUse
from teho.model.tuned import Change
from teho.units import format_bytes, format_count, format_pace

__all__ = ["with_words"]

_CROWDED = 0.05
"""Share of a GPU's memory from which other programs on this GPU are mentioned."""
_CHANGES_TRAINING = (
    "Another batch size changes the training: check the result. The learning rate may need an "
    "adjustment, and there are fewer steps in an epoch if batches are larger."
)
_FIRST_STEPS = (
    "The memory was measured in the first steps. Longer samples, a validation or a checkpoint may "
    "need more memory: leave some memory free."
)
_SINGLE_RUNS = (
    "Each batch size had one run, so speeds that differ by less than 5 % count as equal. If "
    "several batch sizes are equally fast, Teho reports the smallest as the fastest. Other "
    "programs on the node can cause larger differences. `teho tune --allow batch-size -- COMMAND` "
    "repeats the runs, and shows whether a gain is real."
)


def with_words(found: BatchSizes, base: Attempt) -> BatchSizes:
    """Return a result with its verdict, its changes and its notes.

    Args:
        found: the result without words.
        base: a run of the unchanged program. It has the line where the loader is made.
    """
    return msgspec.structs.replace(
        found,
        verdict=_verdict(found),
        changes=_changes(found, base),
        notes=tuple(_notes(found)),
    )


# ---- verdict ----


def _verdict(found: BatchSizes) -> str:
    if found.largest is None:
        return _none_fits(found)
    text = _largest(found, found.largest)
    rates = {one.batch_size: one.samples_per_s for one in found.tries}
    rate = rates.get(found.fastest) if found.fastest else None
    if found.fastest is None or rate is None:
        return text
    size = _number(found.fastest)
    result = f"was the fastest in single runs: {format_pace(rate)} samples/s"
    if found.outcome == "unproved":
        return f"{text}. Of the measured batch sizes, {size} {result}"
    if found.fastest == found.largest and found.ended_by == "memory":
        return f"{text}, and this batch {result}"
    return f"{text}; a batch of {size} {result}"


def _largest(found: BatchSizes, largest: int) -> str:
    size = f"{_number(largest)}{_of_memory(found, largest)}"
    above = [one for one in found.tries if one.batch_size > largest and one.ended != "fits"]
    next_one = min(above, key=lambda one: one.batch_size, default=None)
    if found.ended_by == "memory":
        return f"The largest batch that fits is {size}"
    if found.ended_by == "dataset":
        return f"The largest batch that the dataset fills is {size}, and this batch fits"
    if found.ended_by == "failed" and next_one:
        return (
            f"A batch of {size} fits; a batch of {_number(next_one.batch_size)} failed, but not "
            "because of memory"
        )
    why = {
        "time": "the time limit was reached: increase `--for`",
        "too_slow": "a step takes too long",
    }.get(found.ended_by, "the search was ended early")
    if next_one and next_one.ended == "out_of_memory":
        return (
            f"A batch of {size} fits, and a batch of {_number(next_one.batch_size)} does not fit; "
            f"sizes between these two were not tried, because {why}"
        )
    return f"A batch of {size} fits; larger batches were not measured, because {why}"


def _none_fits(found: BatchSizes) -> str:
    smallest = min(found.tries, key=lambda one: one.batch_size)
    if found.ended_by == "memory":
        return f"No batch fits: even a batch of {smallest.batch_size} runs out of memory"
    if found.ended_by == "failed":
        return (
            f"No batch was found that fits: a batch of {_number(smallest.batch_size)} failed, but "
            "not because of memory"
        )
    why = "the search was ended early" if found.ended_by == "interrupt" else "increase `--for`"
    return f"Not enough evidence: no batch was found that fits; {why}"


def _of_memory(found: BatchSizes, size: int) -> str:
    """Return how much of the memory a size needs, in brackets; empty if it was not measured."""
    own = next(one.memory for one in found.tries if one.batch_size == size)
    used_bytes, most_bytes, what = _on_gpu(own), own.gpu_total_bytes, "GPU memory"
    if used_bytes is None:
        used_bytes, most_bytes, what = own.host_bytes, found.memory_limit_bytes, "memory"
    if used_bytes is None:
        return ""
    each_bytes = own.process_limit_bytes
    if what == "memory" and each_bytes and each_bytes < (most_bytes or math.inf):
        limit = f"each process may use {format_bytes(each_bytes)}"
        return f" ({format_bytes(used_bytes)} memory; {limit})"
    most = f"of {format_bytes(most_bytes)} " if most_bytes else ""
    return f" ({format_bytes(used_bytes)} {most}{what})"


def _on_gpu(memory: MemoryUse) -> int | None:
    return memory.gpu_used_bytes if memory.gpu_bytes is None else memory.gpu_bytes


def _number(size: int) -> str:
    return format_count(float(size))


# ---- changes and notes ----


def _changes(found: BatchSizes, base: Attempt) -> tuple[Change, ...]:
    wanted = {found.fastest: "the fastest batch", found.largest: "the largest batch that fits"}
    if found.fastest == found.largest:
        wanted[found.largest] = "the largest batch that fits, and the fastest batch"
    return tuple(
        msgspec.structs.replace(change, remark=what)
        for size, what in wanted.items()
        if size is not None and size != found.own
        for change in changes_of({"batch_size": size}, base)
    )


def _notes(found: BatchSizes) -> list[str]:
    notes = [_CHANGES_TRAINING] if {found.largest, found.fastest} - {None, found.own} else []
    if found.processes > 1:
        notes.append(
            f"The batch sizes are for each of the {found.processes} processes; samples/s are for "
            "all processes together."
        )
    if found.largest is not None:
        notes.append(_FIRST_STEPS)
    if found.fastest is not None:
        notes.append(_SINGLE_RUNS)
    if crowd := max(map(_others_bytes, found.tries), default=0):
        notes.append(
            f"Other programs used {format_bytes(crowd)} of the GPU's memory. Without them, larger "
            "batches may fit."
        )
    return notes


def _others_bytes(one: BatchTry) -> int:
    own = one.memory
    if own.gpu_bytes is None or own.gpu_used_bytes is None or not own.gpu_total_bytes:
        return 0
    others = own.gpu_used_bytes - own.gpu_bytes
    return others if others > _CROWDED * own.gpu_total_bytes else 0
