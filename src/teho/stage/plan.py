"""Compares the source of a copy with what is at its destination; reads no file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from teho.model.finding import Threshold
from teho.model.staged import Problem
from teho.stage.machine import shown

__all__ = ["Entry", "Plan", "differences", "entries", "is_many_small", "is_same", "plan_copy"]

_SAME_NS = 1_000_000_000
"""Some file systems keep only whole seconds."""
_WORDS = {"d": "a folder", "f": "a file", "l": "a symbolic link"}


class Entry(NamedTuple):
    """A file, link or folder, as `list_all` of `side.py` describes it."""

    name: str
    """With the name of the source as its first part."""
    kind: str
    """`f`, `l` or `d`; otherwise what it is; empty: it cannot be read."""
    size: int
    mtime_ns: int
    target: str = ""
    """Of a link."""
    why: str = ""
    """Why it cannot be read."""
    mode: int = 0o644


class Plan(NamedTuple):
    """What has to be done with each entry of the source."""

    new: tuple[Entry, ...]
    """Not at the destination yet, with the folders that they need."""
    newer: tuple[Entry, ...]
    """Files whose older copy was staged before: it is replaced."""
    present: tuple[Entry, ...]
    """Files and links that are at the destination already."""
    conflicts: tuple[Problem, ...]
    """Files of the user at the destination: they stay."""
    skipped: tuple[Problem, ...]
    """Special files."""
    unreadable: tuple[Problem, ...]

    @property
    def to_copy(self) -> tuple[Entry, ...]:
        """All files and links that have to be copied."""
        return tuple(one for one in (*self.new, *self.newer) if one.kind != "d")

    @property
    def copy_bytes(self) -> int:
        """Bytes of the files that have to be copied."""
        return sum(one.size for one in self.to_copy if one.kind == "f")

    @property
    def wanted(self) -> tuple[Entry, ...]:
        """All files and links that should be at the destination in the end."""
        return (*self.to_copy, *self.present)


def entries(answers: Iterable[list[object]]) -> list[Entry]:
    """Return the entries of a listing."""
    return [Entry(*answer) for answer in answers]  # type: ignore[arg-type] # of `side.py`


def is_same(one: Entry, other: Entry) -> bool:
    """Return whether two entries have the same kind, size, time and target."""
    if one.kind != other.kind or one.kind == "d":
        return one.kind == other.kind
    if one.kind == "l":
        return one.target == other.target
    return one.size == other.size and abs(one.mtime_ns - other.mtime_ns) <= _SAME_NS


def plan_copy(
    source: Iterable[Entry], there: Iterable[Entry], staged: Mapping[str, tuple[int, int]]
) -> Plan:
    """Decide for each entry of the source whether it is copied.

    Args:
        source: the listing of the source, each folder before what is in it.
        there: the listing of the destination.
        staged: name -> size and time of each file as an earlier copy left it.
    """
    known = {one.name: one for one in there}
    new: list[Entry] = []
    newer: list[Entry] = []
    present: list[Entry] = []
    conflicts: list[Problem] = []
    skipped: list[Problem] = []
    unreadable: list[Problem] = []
    blocked = ""  # a folder of the source that is not a folder at the destination
    for one in source:
        other = known.get(one.name)
        if blocked and one.name.startswith(blocked):
            continue
        if one.why:
            unreadable.append(Problem(path=shown(one.name), why=one.why))
        elif one.kind not in _WORDS:
            skipped.append(Problem(path=shown(one.name), why=one.kind))
        elif other is None:
            new.append(one)
        elif is_same(one, other):
            present += [one] if one.kind != "d" else []
        elif one.kind == other.kind == "f" and _may_replace(one, other, staged.get(one.name)):
            newer.append(one)
        else:
            why = _conflict(one, other, was_staged=one.name in staged)
            conflicts.append(Problem(path=shown(one.name), why=why))
            blocked = f"{one.name}/" if one.kind == "d" else ""
    return Plan(*map(tuple, (new, newer, present, conflicts, skipped, unreadable)))  # type: ignore[arg-type]


def _may_replace(one: Entry, there: Entry, staged: tuple[int, int] | None) -> bool:
    """Return whether a file at the destination is as an earlier copy left it, and is older."""
    if staged is None or there.size != staged[0]:
        return False
    is_ours = abs(there.mtime_ns - staged[1]) <= _SAME_NS
    return is_ours and one.mtime_ns >= there.mtime_ns


def _conflict(one: Entry, other: Entry, *, was_staged: bool = False) -> str:
    if one.kind != other.kind:
        there = _WORDS.get(other.kind, other.kind)
        return f"{there} at the destination, but {_WORDS[one.kind]} in the source"
    if one.kind == "l":
        return "the link at the destination points to another file or folder"
    if was_staged:
        return "the file at the destination was changed after the copy, or is newer"
    return "the destination has another file with this name, which `teho stage` did not copy"


def differences(wanted: Iterable[Entry], there: Iterable[Entry]) -> list[Problem]:
    """Name each file and link that is not at the destination as it should be."""
    known = {one.name: one for one in there}
    found = []
    for one in wanted:
        other = known.get(one.name)
        if other is None:
            why = "missing at the destination"
        elif is_same(one, other):
            continue
        elif one.kind == other.kind == "f" and one.size != other.size:
            why = (
                f"the file has {other.size:,} bytes at the destination, and {one.size:,} in the "
                "source"
            )
        elif one.kind == other.kind == "f":
            why = "the file at the destination has another modification time"
        else:
            why = _conflict(one, other)
        found.append(Problem(path=shown(one.name), why=why))
    return found


def is_many_small(count: int, total_bytes: int, many: Threshold, small: Threshold) -> bool:
    """Return whether there are many files, and their mean size is small."""
    return count >= many.value and total_bytes / count < small.value * 1024
