"""Puts the samples of a log in order: times, rounds of all GPUs of a node, and separate runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from itertools import groupby, pairwise
from statistics import median
from typing import NamedTuple

from teho.errors import InputError
from teho.jobs.log import Log, Sample, Source
from teho.units import counted, format_duration

__all__ = ["NodeRounds", "Round", "distinct", "node_rounds", "separate_runs", "with_times"]

_DAY_S = 86_400.0
_CONFLICTS_MOST = 0.2
"""If more rows than this part have the same time as a row with other values, the file is from
several machines."""
_GAP_LEAST_S, _GAP_PERIODS = 60.0, 20.0
"""A longer gap separates two runs: the user has logged again, into the same file."""


class Round(NamedTuple):
    """The values of a node and its GPUs at about the same time."""

    at_s: float
    """In s since 1970."""
    samples: dict[str, Sample]
    """By key of the GPU, or `NODE`."""


class NodeRounds(NamedTuple):
    """The rounds of one node, in the order of time."""

    name: str
    rounds: list[Round]
    period_s: float | None
    """Time between two rounds; None: there is only one."""


def with_times(log: Log, source: Source, every_s: float | None) -> list[Sample]:
    """Return the samples with the time of each.

    Args:
        log: the content of a file.
        source: the file.
        every_s: the time between two samples that the user gave.

    Raises:
        InputError: the file does not say when its samples were taken, and neither does the user.
    """
    if not log.has_dates:
        return _with_dates(log, source)
    known = [sample for sample in log.samples if sample.at_s is not None]
    if log.has_times_of_blocks:
        return _in_blocks(known, log, source, every_s)
    if known:
        if lost := len(log.samples) - len(known):
            log.notes.append(_before_first_time(lost))
        return known
    return _every(log, source, every_s)


def _with_dates(log: Log, source: Source) -> list[Sample]:
    """Give times of the day a date: the last one is on the day of the file's last change."""
    days, before_s, found = 0, 0.0, []
    for sample in log.samples:
        at_s = sample.at_s or 0.0
        days += at_s < before_s - _DAY_S / 2
        before_s = at_s
        found.append(sample._replace(at_s=days * _DAY_S + at_s))
    if not found:
        return []
    midnight = datetime.fromtimestamp(source.changed_s).astimezone().replace(
        hour=0, minute=0, second=0, microsecond=0
    )  # fmt: skip
    begin_s = midnight.timestamp() - days * _DAY_S
    if begin_s + (found[-1].at_s or 0.0) > source.changed_s + 1:
        begin_s -= _DAY_S
    log.notes.append(
        "The times in the log have no date. Teho took the date of the last change of the file."
    )
    return [sample._replace(at_s=begin_s + (sample.at_s or 0.0)) for sample in found]


def _every(log: Log, source: Source, every_s: float | None) -> list[Sample]:
    """Give a sample of each GPU in turn a time; the last ones are from the file's last change."""
    every_s = every_s or log.period_s
    if not log.samples:
        return []
    if every_s is None:
        raise _no_times(source)
    rounds = _numbered(log.samples)
    begin_s = source.changed_s - rounds[-1] * every_s
    changed = datetime.fromtimestamp(source.changed_s, timezone.utc).astimezone()
    counts = "" if log.covers_s else f"counts {format_duration(every_s)} between two samples, and "
    log.notes.append(
        f"The log has no times. Teho {counts}assumes that the log ended when its file was last "
        f"changed: {changed:%Y-%m-%d %H:%M:%S %Z}."
    )
    return [
        sample._replace(at_s=begin_s + number * every_s)
        for sample, number in zip(log.samples, rounds, strict=True)
    ]


def _no_times(source: Source) -> InputError:
    return InputError(
        f"{source.path} does not say when its samples were taken",
        "a time in each row, or the time between two samples in `--every`",
        "add `--every 5s`, with the number after -l or -d of the command that wrote "
        "the file (`nvidia-smi -l` without a number: 5 s)",
    )


def _in_blocks(
    samples: Sequence[Sample], log: Log, source: Source, every_s: float | None
) -> list[Sample]:
    """Give each round after the same time line its own time."""
    if lost := len(log.samples) - len(samples):
        log.notes.append(_before_first_time(lost))
    found: list[Sample] = []
    numbers = _numbered(samples, by_time=True)
    every_s = every_s or log.period_s
    for sample, number in zip(samples, numbers, strict=True):
        if number and every_s is None:
            raise _no_times(source)
        found.append(sample._replace(at_s=(sample.at_s or 0.0) + number * (every_s or 0.0)))
    return found


def _before_first_time(rows: int) -> str:
    return (
        f"{counted(rows, 'row')} before the first time in the log "
        f"{'is' if rows == 1 else 'are'} not used."
    )


def _numbered(samples: Sequence[Sample], *, by_time: bool = False) -> list[int]:
    """Return the number of each sample's round: a new one begins when a GPU comes again.

    Args:
        samples: in the order of the file.
        by_time: whether the numbers begin again with each new time.
    """
    seen: set[tuple[str, str]] = set()
    number, at_s, numbers = 0, None, []
    for sample in samples:
        if by_time and sample.at_s != at_s:
            seen, number, at_s = set(), 0, sample.at_s
        if (sample.node, sample.device) in seen:
            seen, number = set(), number + 1
        seen.add((sample.node, sample.device))
        numbers.append(number)
    return numbers


def distinct(samples: list[Sample], source: Source, notes: list[str]) -> list[Sample]:
    """Return the samples in the order of time, without those that are in a file twice.

    Args:
        samples: with their times; they are sorted.
        source: the file.
        notes: gets a sentence about rows that are left out.

    Raises:
        InputError: rows of one GPU contradict each other, as in a file of several machines.
    """
    # Sorted in place: a log of some days has a million samples.
    samples.sort(key=_at)
    found: list[Sample] = []
    twice = other = 0
    for _, of_time in groupby(samples, key=_at):
        seen: dict[tuple[str, str], Sample] = {}
        for sample in of_time:
            first = seen.setdefault((sample.node, sample.device), sample)
            if first is sample:
                found.append(sample)
            else:
                same = first[3:] == sample[3:]
                twice, other = twice + same, other + (not same)
    if other > _CONFLICTS_MOST * len(samples):
        raise InputError(
            f"{source.path} has {other:,} rows with the same time and GPU, but other values",
            "the rows of one machine, or a column hostname or uuid",
            "give one file for each machine",
        )
    if twice:
        notes.append(
            f"{counted(twice, 'row')} of {source.path.name} {'is' if twice == 1 else 'are'} in the "
            "file twice, and counted once."
        )
    if other:
        notes.append(
            f"{counted(other, 'row')} of {source.path.name} {'has' if other == 1 else 'have'} the "
            "same time as another row of the same GPU: only the first row counts."
        )
    return found


def _at(sample: Sample) -> float:
    return sample.at_s or 0.0


def node_rounds(samples: Iterable[Sample]) -> list[NodeRounds]:
    """Return the rounds of each node, from samples in the order of time."""
    of_nodes: dict[str, list[Sample]] = {}
    for sample in samples:
        of_nodes.setdefault(sample.node, []).append(sample)
    return [
        NodeRounds(name, *_rounds(own))
        for name, own in sorted(of_nodes.items(), key=lambda n: n[0])
    ]


def _rounds(samples: Sequence[Sample]) -> tuple[list[Round], float | None]:
    times: dict[str, list[float]] = {}
    for sample in samples:
        times.setdefault(sample.device, []).append(sample.at_s or 0.0)
    steps = [
        later - earlier
        for of_device in times.values()
        for earlier, later in pairwise(of_device)
        if later > earlier
    ]
    period_s = median(steps) if steps else None
    rounds: list[Round] = []
    began_s = 0.0
    for sample in samples:
        at_s = sample.at_s or 0.0
        is_new = not rounds or (period_s is not None and at_s - began_s > period_s / 2)
        if is_new or sample.device in rounds[-1].samples:
            began_s = at_s
            rounds.append(Round(at_s, {}))
        rounds[-1].samples[sample.device] = sample
        rounds[-1] = rounds[-1]._replace(at_s=at_s)
    return rounds, period_s


def separate_runs(nodes: Sequence[NodeRounds], *, is_whole: bool) -> list[list[NodeRounds]]:
    """Return the nodes of each run. A long gap on all nodes separates two runs.

    Args:
        nodes: all rounds of all nodes.
        is_whole: whether everything is one run.
    """
    times = sorted({one.at_s for node in nodes for one in node.rounds})
    periods = [node.period_s for node in nodes if node.period_s is not None]
    if is_whole or not periods:
        return [list(nodes)] if times else []
    most_s = max(_GAP_LEAST_S, _GAP_PERIODS * max(periods))
    begins = [times[0], *(later for earlier, later in pairwise(times) if later - earlier > most_s)]
    runs: list[list[NodeRounds]] = []
    for begin_s, end_s in pairwise([*begins, float("inf")]):
        parts = [
            node._replace(rounds=[one for one in node.rounds if begin_s <= one.at_s < end_s])
            for node in nodes
        ]
        runs.append([part for part in parts if part.rounds])
    return runs
