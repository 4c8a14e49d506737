"""Compares checksums of a random sample of files on both sides."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from teho.model.staged import Problem
from teho.stage.machine import Machine, shown
from teho.stage.plan import Entry
from teho.units import MIB

__all__ = ["Part", "choose", "compare", "compare_headers"]

_PART_BYTES = 64 * MIB
"""Of a larger file, a sample has a random part of this size: a whole file may take hours."""


class Part(NamedTuple):
    """A part of a file."""

    name: str
    offset: int
    size: int


def choose(files: Sequence[Entry], count: int | None) -> list[Part]:
    """Return random files, and of each large file a random part.

    Args:
        files: all files.
        count: how many; None: all files, each as a whole.
    """
    full = [one for one in files if one.size]
    if count is None:
        return [Part(one.name, 0, one.size) for one in full]
    draw = random.SystemRandom()
    parts = []
    for one in draw.sample(full, min(count, len(full))):
        size = min(one.size, _PART_BYTES)
        parts.append(Part(one.name, draw.randint(0, one.size - size), size))
    return parts


def compare(
    parts: Sequence[Part],
    here: tuple[Machine, str],
    there: tuple[Machine, str],
    archived: tuple[str, Mapping[str, int]] | None,
    progress: Callable[[int], None],
) -> list[Problem]:
    """Name each file whose checksums differ.

    Args:
        parts: what is compared.
        here: the machine and folder of the source.
        there: the machine and folder of the destination.
        archived: name of the archive there, and the offset of each file in it; None: no archive.
        progress: called with the number of bytes that were compared.
    """
    if not parts:
        return []
    ranges_here = [[one.name, one.offset, one.size] for one in parts]
    ranges_there = ranges_here
    if archived:
        name, offsets = archived
        ranges_there = [[name, offsets[one.name] + one.offset, one.size] for one in parts]
    found = []
    done = 0
    with (
        here[0].talk("sums", here[1], ranges=ranges_here) as answers_here,
        there[0].talk("sums", there[1], ranges=ranges_there) as answers_there,
    ):
        answers = zip(parts, answers_here.answers(), answers_there.answers(), strict=False)
        for part, (sum_here, why_here), (sum_there, why_there) in answers:
            done += part.size
            progress(done)
            why = ""
            if why_here or why_there:
                why = f"{why_here} in the source" if why_here else f"{why_there} at the destination"
            elif sum_here != sum_there:
                why = "the checksums in the source and at the destination differ"
            if why:
                found.append(Problem(path=shown(part.name), why=why))
    return found


def compare_headers(
    headers: Sequence[tuple[str, int, bytes]], there: tuple[Machine, str], archive: str
) -> list[Problem]:
    """Name each member of an archive whose header is not as it should be.

    Args:
        headers: name, offset and content of the headers.
        there: the machine and folder of the archive.
        archive: its name.
    """
    ranges = [[archive, offset, len(header)] for _, offset, header in headers]
    sums = there[0].ask("sums", there[1], ranges=ranges)
    return [
        Problem(path=shown(name), why=why or "the header of the file in the archive is damaged")
        for (name, _, header), (found, why) in zip(headers, sums, strict=True)
        if found != hashlib.sha256(header).hexdigest()
    ]
