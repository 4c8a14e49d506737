"""Reading what a node's stack sampler saw of its Python processes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from teho.model.watched import Frame, Seen, State

__all__ = ["Outside", "Slice", "in_all", "in_parts", "is_of_stacks", "lines_of", "read_stacks"]

_PARTS = 4
_SHORTEST_S = 20.0
"""Of a process's time, to be told part by part."""


class Slice(NamedTuple):
    """What was seen of one process from one moment to another."""

    from_s: float
    until_s: float
    seen: tuple[Seen, ...]


class Outside:
    """What was seen of one process from outside."""

    def __init__(self) -> None:
        self.slices: list[Slice] = []
        self.why = ""
        """Why nothing could be seen; empty if it could."""


def is_of_stacks(path: Path) -> bool:
    """Tell a stack sampler's file from those of probes: `NODE-stacks-PID.jsonl`."""
    return f"-{path.stem}".rpartition("-")[0].endswith("-stacks")


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    """Yield a file's whole lines; its writer may be in the midst of another."""
    data = path.read_bytes()
    for line in data[: data.rfind(b"\n") + 1].splitlines():
        yield msgspec.json.decode(line, type=dict[str, Any])


def read_stacks(path: Path, problems: list[str]) -> dict[str, Outside]:
    """Return what was seen of each process, by the name of its probe's file without its ending.

    Args:
        path: the file.
        problems: gains a sentence if the file was full.
    """
    # In a recording each file's name begins with its node's, in the spool it does not.
    node = f"-{path.stem}".rpartition("-stacks-")[0].lstrip("-")
    frames: dict[int, Frame] = {}
    stacks: dict[str, tuple[Frame, ...]] = {}
    found: defaultdict[str, Outside] = defaultdict(Outside)
    for line in lines_of(path):
        if "frame" in line:
            frames[line["frame"]] = msgspec.convert(line["is"][:4], Frame)
        elif "stack" in line:
            stacks[str(line["stack"])] = tuple(frames[number] for number in line["frames"])
        elif "full" in line:
            problems.append(f"{path}: the stack sampler's file is full: the end is not in it")
        elif "process" in line:
            of = found[f"{node}-{line['process']}" if node else line["process"]]
            if "failed" in line:
                of.why = line["failed"]
            elif "seen" in line:
                of.slices.append(_slice(line, stacks))
    return dict(found)


def _slice(line: dict[str, Any], stacks: dict[str, tuple[Frame, ...]]) -> Slice:
    seen = tuple(
        Seen(
            frames=stacks.get(number, ()),
            state=State(state),
            looks=int(looks),
            wall_s=wall_s,
        )
        for number, states in line["seen"].items()
        for state, (looks, wall_s) in states.items()
    )
    return Slice(line["from_s"], line["until_s"], seen)


def in_all(slices: Sequence[Slice]) -> tuple[Seen, ...]:
    """Add slices up, most time first."""
    return _sum((seen, 1.0) for one in slices for seen in one.seen)


def in_parts(
    slices: Sequence[Slice], began_s: float, until_s: float
) -> tuple[tuple[Seen, ...], ...]:
    """Divide what was seen over equal parts of the time; empty if that was short."""
    if until_s - began_s < _SHORTEST_S:
        return ()
    edges = [began_s + (until_s - began_s) * number / _PARTS for number in range(_PARTS + 1)]
    return tuple(
        _sum(
            (seen, _overlap(one, begin, end))
            for one in slices
            if _overlap(one, begin, end) > 0
            for seen in one.seen
        )
        for begin, end in pairwise(edges)
    )


def _overlap(one: Slice, begin_s: float, end_s: float) -> float:
    """Return which share of a slice is between two moments."""
    inside_s = min(one.until_s, end_s) - max(one.from_s, begin_s)
    whole_s = one.until_s - one.from_s
    return max(0.0, inside_s / whole_s) if whole_s > 0 else float(begin_s <= one.from_s < end_s)


def _sum(weighted: Iterator[tuple[Seen, float]]) -> tuple[Seen, ...]:
    found: dict[tuple[tuple[Frame, ...], State], list[float]] = {}
    for seen, weight in weighted:
        of = found.setdefault((seen.frames, seen.state), [0.0, 0.0])
        of[0] += weight * seen.looks
        of[1] += weight * seen.wall_s
    return tuple(
        Seen(frames=frames, state=state, looks=round(looks), wall_s=wall_s)
        for (frames, state), (looks, wall_s) in sorted(found.items(), key=lambda pair: -pair[1][1])
    )
