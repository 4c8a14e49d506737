"""Reads the stacks that a node's stack sampler recorded of its Python processes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from teho.model.in_source import (
    ColumnFilter,
    CostlyOption,
    InLoop,
    InTurn,
    MissingIndex,
    ReopenedConnection,
    Repeated,
    RepeatedPlan,
    Unneeded,
    Whole,
)
from teho.model.stack import Frame, Seen, State
from teho.store.slices import Slice, changed, entries
from teho.store.stack_corrections import corrected

__all__ = ["OutsideStacks", "is_stack_file", "lines_of", "read_stacks"]

_InLoop = TypeVar("_InLoop", bound=InLoop)
_IN_LOOPS: dict[str, type[InLoop]] = {
    "repeated": Repeated,
    "unneeded": Unneeded,
    "repeated_plans": RepeatedPlan,
    "reopened": ReopenedConnection,
    "in_turn": InTurn,
    "wholes": Whole,
}
"""What a line about a process may have: calls in loops, by the name of their field."""


class OutsideStacks:
    """The stacks of one process, read from outside."""

    def __init__(self) -> None:
        self.slices: list[Slice] = []
        self.stayed: Counter[Frame] = Counter()
        """Innermost place -> how much more often the thread stayed there than it continued."""
        self.columns: dict[Frame, tuple[int, ...]] = {}
        """For frames without a text: where they are in their line, in bytes."""
        self.in_loops: dict[str, list[Any]] = {name: [] for name in _IN_LOOPS}
        """What the source shows about calls in loops, by its name in the file."""
        self.column_filters: list[ColumnFilter] = []
        self.costly_options: list[CostlyOption] = []
        self.missing_indexes: list[MissingIndex] = []
        self.stays: dict[str, Any] = {}
        """What it waits for in the line in which it stays, as it is in the file; empty: nothing."""
        self.others: tuple[tuple[Frame, ...], ...] = ()
        """The stacks of `stays`."""
        self.ended: dict[str, Any] | None = None
        """Its end, as it is in the file."""
        self.failure = ""
        """Why the stacks could not be read; empty if they were read."""

    def set_texts(self, texts: Mapping[tuple[str, int], str]) -> None:
        """Give each frame without a text the text of its line.

        Args:
            texts: file and line -> text.
        """
        new: dict[Frame, Frame] = {}
        for frame in {frame for seen in entries(self.slices) for frame in seen.frames}:
            line = "" if frame.text else texts.get((frame.file, frame.line), "")
            if line:
                begin, end = self.columns.get(frame, (0, None))
                text = line.encode()[begin:end].decode("utf-8", "replace").strip()
                new[frame] = msgspec.structs.replace(frame, text=text)
        self.stayed = Counter({new.get(one, one): count for one, count in self.stayed.items()})

        def with_text(seen: Seen) -> tuple[Seen]:
            frames = tuple(new.get(frame, frame) for frame in seen.frames)
            return (msgspec.structs.replace(seen, frames=frames),)

        self.slices = changed(self.slices, with_text)


def is_stack_file(path: Path) -> bool:
    """Return whether a file is a stack sampler's, `NODE-stacks-PID.jsonl`, and not a probe's."""
    return f"-{path.stem}".rpartition("-")[0].endswith("-stacks")


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the complete lines of a file; another line may be incomplete."""
    data = path.read_bytes()
    for line in data[: data.rfind(b"\n") + 1].splitlines():
        yield msgspec.json.decode(line, type=dict[str, Any])


def read_stacks(path: Path, problems: list[str]) -> dict[str, OutsideStacks]:
    """Return the stacks of each process, by the stem of its probe's file name.

    Args:
        path: the file.
        problems: gets a sentence if the file was full.
    """
    # In a recording, each file name begins with the node's name; in the spool, it does not.
    node = f"-{path.stem}".rpartition("-stacks-")[0].lstrip("-")
    frames: dict[int, Frame] = {}
    columns: defaultdict[Frame, set[tuple[int, ...]]] = defaultdict(set)
    stacks: dict[str, tuple[Frame, ...]] = {}
    found: defaultdict[str, OutsideStacks] = defaultdict(OutsideStacks)
    for line in lines_of(path):
        if "frame" in line:
            number, place = line["frame"], line["is"]
            frames[number] = msgspec.convert(place[:4], Frame)
            columns[frames[number]].add(tuple(place[4:]))
        elif "stack" in line:
            stacks[str(line["stack"])] = tuple(frames[number] for number in line["frames"])
        elif "full" in line:
            problems.append(f"{path}: the stack sampler's file is full: later stacks are missing")
        elif "gave_up" in line:
            problems.append(
                f"{path}: the stack sampler failed before the end of the run: {line['gave_up']}"
            )
        elif "not_searched" in line:
            problems.append(
                f"{path}: the search of the program's source failed: {line['not_searched']}"
            )
        elif "process" in line:
            process = found[f"{node}-{line['process']}" if node else line["process"]]
            if "failed" in line:
                process.failure = line["failed"]
            elif "ended_s" in line:
                process.ended = line
            elif "stays" in line:
                process.stays = line["stays"]
                numbers = line["stays"].get("others", ())
                process.others = tuple(stacks.get(str(number), ()) for number in numbers)
            elif found_in_loop := next(filter(line.__contains__, _IN_LOOPS), None):
                process.in_loops[found_in_loop] += _in_loops(
                    line[found_in_loop], _IN_LOOPS[found_in_loop], frames
                )
            elif "column_filters" in line:
                process.column_filters += (
                    ColumnFilter(frame=frames[number], text=text)
                    for number, text in line["column_filters"]
                )
            elif "costly_options" in line:
                process.costly_options += (
                    msgspec.convert(
                        {**one, "lines": [frames[number] for number in one["lines"]]}, CostlyOption
                    )
                    for one in line["costly_options"]
                )
            elif "missing_indexes" in line:
                process.missing_indexes += (
                    msgspec.convert({**one, "frame": frames[one["frame"]]}, MissingIndex)
                    for one in line["missing_indexes"]
                )
            elif "seen" in line:
                process.slices.append(_slice(line, stacks))
                for number, (stayed, went_on) in line["stayed"].items():
                    process.stayed[frames[int(number)]] += stayed - went_on
    for process in found.values():
        # If a line has several calls, its whole text is used.
        process.columns = {
            frame: next(iter(places))
            for frame, places in columns.items()
            if len(places) == 1 and () not in places
        }
        process.slices = corrected(process.slices, process.stayed)
        process.in_loops = {
            name: [_with_periods(one, process.slices) for one in calls]
            for name, calls in process.in_loops.items()
        }
    return dict(found)


def _in_loops(
    lines: Sequence[dict[str, Any]], kind: type[_InLoop], frames: Mapping[int, Frame]
) -> list[_InLoop]:
    """Return calls in loops, which are written with the numbers of their frames."""
    return [
        msgspec.convert({**one, "calls": [frames[number] for number in one["calls"]]}, kind)
        for one in lines
    ]


def _with_periods(repeated: _InLoop, slices: Sequence[Slice]) -> _InLoop:
    places: dict[int, tuple[bool, bool]] = {}
    """By the id of a stack, which many entries share: whether it is in the call, and beside it."""
    for seen in entries(slices):
        key = id(seen.frames)
        if key not in places:
            places[key] = repeated.shows(seen)
    periods = sum(
        any(places[id(seen.frames)][0] for seen in one.seen)
        and any(places[id(seen.frames)][1] for seen in one.seen)
        for one in slices
    )
    return msgspec.structs.replace(repeated, periods=periods)


def _slice(line: dict[str, Any], stacks: dict[str, tuple[Frame, ...]]) -> Slice:
    seen = tuple(
        Seen(frames=stacks.get(number, ()), state=State(state), samples=samples, wall_s=wall_s)
        for number, states in line["seen"].items()
        for state, (samples, wall_s) in states.items()
    )
    return Slice(
        line["from_s"], line["until_s"], seen, line.get("queued_s", 0.0), line.get("ran_s", 0.0)
    )
