"""What a stage leaves: one JSON file, of the shape that these classes have.

The standard library is enough to write and to read it: the parent of all stages does both where
Teho itself may not even import.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

__all__ = [
    "RECORDINGS",
    "SCHEMA",
    "STAGES",
    "Piece",
    "Result",
    "Row",
    "StageState",
    "read_result",
    "without_places",
    "write_result",
]

_ROOT = Path(__file__).resolve().parents[2]
SCHEMA = "teho.gpu-day/1"
"""Name and version of the shape; a change that breaks readers raises the number."""
STAGES = ("signals", "truth", "faults", "where", "bench", "compare", "cost")
"""In the order that counts if time is short."""
RECORDINGS = "recordings.tar.gz"
"""The archive beside the JSON files of a call: folders STAGE/NAME."""


@dataclass
class Row:
    """One figure of Teho, beside what it is compared with."""

    what: str
    unit: str = ""
    teho: float | str | None = None
    """What Teho reported, or what was measured of Teho; null: see `why`."""
    other: float | str | None = None
    """The truth, or what another tool reported; null if there is nothing to compare with."""
    whose: str = ""
    """Whose figure `other` is, such as `truth` or `nvidia-smi -q`."""
    why: str = ""
    """Why a value is missing, or what a reader has to know of the figures."""

    @property
    def difference(self) -> float | None:
        """By how much Teho's figure exceeds the other; None if that cannot be said."""
        if isinstance(self.teho, (int, float)) and isinstance(self.other, (int, float)):
            return self.teho - self.other
        return None


@dataclass
class Piece:
    """One part of a stage: a workload, a fault, an example."""

    name: str
    state: str = "done"
    """`done`; `skipped`: it cannot be run here; `failed`: it broke off, `rows` may still be right;
    `out of time`: it was ended, or never begun, because the stage's time was used up."""
    why: str = ""
    """Why it is not `done`; empty if it is."""
    took_s: float = 0.0
    rows: list[Row] = field(default_factory=list)


class StageState:
    """How a stage ended."""

    RUNNING = "running"
    """It has not ended, or its file was taken away from a machine that was."""
    ENDED = "ended"
    BROKEN = "broken"
    """It raised an error, crashed or hung outside of a piece; `why` says which."""


@dataclass
class Result:
    """What came of one stage."""

    stage: str
    began: str
    """Time in UTC, with its offset."""
    schema: str = SCHEMA
    is_rehearsal: bool = False
    """Whether the GPU was a stand-in: such figures mean nothing, and are never shown."""
    state: str = StageState.RUNNING
    why: str = ""
    """Why it is `broken`; empty if it is not."""
    took_s: float = 0.0
    machine: dict[str, str] = field(default_factory=dict)
    """GPU, driver, processor, versions: name and words. What is not known is not there."""
    pieces: list[Piece] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)
    """What was kept in the archive of recordings, and its size in bytes; -1: left out because the
    archive was full."""

    def piece(self, name: str) -> Piece | None:
        """Return a piece by its name; None if there is none."""
        return next((piece for piece in self.pieces if piece.name == name), None)


def write_result(result: Result, folder: Path) -> Path:
    """Write a stage's file as a whole: whoever reads it never sees half of it."""
    path = folder / f"{result.stage}.json"
    part = path.with_suffix(".part")
    text = json.dumps(asdict(result), indent=1, ensure_ascii=False, allow_nan=False)
    part.write_text(without_places(text) + "\n", encoding="utf-8")
    part.replace(path)
    return path


def without_places(text: str) -> str:
    """Return a text with neutral names for the folders of this machine."""
    for place, word in ((_ROOT, "/teho"), (Path.home(), "/home/user")):
        if len(place.parts) > 1:
            text = text.replace(f"{place}/", f"{word}/")
    return text


def read_result(path: Path) -> Result:
    """Read a stage's file.

    Raises:
        ValueError: it is not one; the text says what is wrong.
    """
    try:
        told: dict[str, Any] = json.loads(path.read_bytes())
        pieces = [
            Piece(**{**piece, "rows": [Row(**row) for row in piece["rows"]]})
            for piece in told["pieces"]
        ]
        result = Result(**{**told, "pieces": pieces})
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: not the result of a stage: {error}") from error
    if result.schema != SCHEMA:
        raise ValueError(f"{path}: its schema is {result.schema!r}, expected {SCHEMA!r}")
    return result
