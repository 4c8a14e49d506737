"""The JSON file that a stage writes. Its fields are the fields of these classes.

This module needs only the standard library. The program that starts the stages uses this module,
and Teho may not be installed there.
"""

from __future__ import annotations

import json
import re
import sys
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
"""Name and version of the format; a change that breaks readers raises the number."""
STAGES = (
    "signals", "truth", "faults", "where", "bench", "compare", "cost", "feed", "trace", "strangers",
)  # fmt: skip
"""The most important stages come first."""
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
    """Why a value is missing, or what a reader has to know about the figures."""

    @property
    def difference(self) -> float | None:
        """Teho's figure minus the other figure; None if one of them is not a number."""
        if isinstance(self.teho, (int, float)) and isinstance(self.other, (int, float)):
            return self.teho - self.other
        return None


@dataclass
class Piece:
    """One part of a stage: a workload, a fault, an example."""

    name: str
    state: str = "done"
    """`done`; `skipped`: the piece cannot run here; `failed`: the piece stopped with an error, but
    its `rows` may be right; `out of time`: the piece was stopped, or did not begin, because the
    stage's time was used up."""
    why: str = ""
    """Why the state is not `done`; empty if it is `done`."""
    took_s: float = 0.0
    rows: list[Row] = field(default_factory=list)


class StageState:
    """How a stage ended."""

    RUNNING = "running"
    """The stage has not ended, or the machine was taken away before its end."""
    ENDED = "ended"
    BROKEN = "broken"
    """The stage raised an error, crashed or hung outside of its pieces; `why` says which."""


@dataclass
class Result:
    """The result of one stage."""

    stage: str
    began: str
    """Time in UTC, with its offset."""
    schema: str = SCHEMA
    is_rehearsal: bool = False
    """Whether a stand-in replaced the GPU. The figures then mean nothing, and are never shown."""
    state: str = StageState.RUNNING
    why: str = ""
    """Why the state is `broken`; empty if it is not."""
    took_s: float = 0.0
    machine: dict[str, str] = field(default_factory=dict)
    """GPU, driver, processor and versions, by name. An unknown value has no entry."""
    pieces: list[Piece] = field(default_factory=list)
    files: dict[str, int] = field(default_factory=dict)
    """The names in the archive of recordings, each with its size in bytes; -1: not in the archive,
    because the archive was full."""

    def piece(self, name: str) -> Piece | None:
        """Return a piece by its name; None if there is none."""
        return next((piece for piece in self.pieces if piece.name == name), None)


def write_result(result: Result, folder: Path) -> Path:
    """Write a stage's file, so that a reader never sees only a part of the file."""
    path = folder / f"{result.stage}.json"
    part = path.with_suffix(".part")
    text = json.dumps(asdict(result), indent=1, ensure_ascii=False, allow_nan=False)
    part.write_text(without_places(text) + "\n", encoding="utf-8")
    part.replace(path)
    return path


def without_places(text: str) -> str:
    """Return a text with neutral names for the folders of this machine."""
    for place, word in ((_ROOT, "/teho"), (Path.home(), "/home/user"), (_python(), "/venv")):
        if len(place.parts) > 1:
            text = re.sub(rf"{re.escape(str(place))}(?=[/\"'\s]|$)", word, text)
    return text


def _python() -> Path:
    """Return the environment of the frameworks, which this Python's own uses; or its own."""
    own = Path(sys.prefix)
    sites = [Path(part) for part in sys.path if part.endswith("/site-packages")]
    others = [site.parents[2] for site in sites if own not in site.parents]
    return next((place for place in others if place.parts[1:2] != ("usr",)), own)


def read_result(path: Path) -> Result:
    """Read a stage's file.

    Raises:
        ValueError: it is not a stage's file; the text says what is wrong.
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
