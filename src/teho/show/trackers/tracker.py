"""What a tracker gets of a run: values over time, then the findings and the report."""

from __future__ import annotations

import importlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from teho.errors import InputError
from teho.model.document import Report
from teho.model.metric import METRICS_BY_NAME
from teho.model.run import Run
from teho.show.cells import SEVERITY_WORDS, is_number, labelled_value

__all__ = [
    "PREFIX",
    "TRACKERS",
    "Point",
    "Tracker",
    "Wish",
    "facts_of",
    "imported",
    "points_of",
    "prose_of",
]

PREFIX = "teho/"
"""Beginning of all names, so that they do not replace the values that a program logs."""
_WHOLE = f"{PREFIX}run/"
"""Beginning of the names of figures for the whole run. With the same names as the metrics, a folder
of MLflow would also be a file."""
TRACKERS = {
    "tensorboard": "teho.show.trackers.tensorboard",
    "wandb": "teho.show.trackers.of_wandb",
    "mlflow": "teho.show.trackers.of_mlflow",
    "trackio": "teho.show.trackers.of_trackio",
}
"""Module of each tracker; the module has its class as `TRACKER`."""


class Wish(NamedTuple):
    """What the user wants."""

    project: str
    """Project, or experiment of MLflow; empty: the tracker's own setting, else `teho`."""
    into: str
    """Id of the tracker's run to add to; empty: a new one."""
    folder: Path | None
    """Folder for a tracker that has no service."""


class Point(NamedTuple):
    """The values of one time."""

    elapsed_s: float
    """Time after the start of the program."""
    values: dict[str, float]
    """By their names."""


class Tracker(ABC):
    """One run in a tracker; its methods raise what the tracker's package raises."""

    package: ClassVar[str] = ""
    """The Python package that must be installed; empty: none."""

    @abstractmethod
    def __init__(self, run: Run, wish: Wish) -> None:
        """Open the run in the tracker."""

    @abstractmethod
    def add(self, points: Sequence[Point]) -> None:
        """Log values; their times are later than at the call before."""

    @abstractmethod
    def end(self, report: Report, files: Mapping[str, Path]) -> str:
        """Log the findings, the facts and the files; return how to see the run, as a sentence."""


def imported(package: str) -> Any:
    """Import the package of a tracker.

    Raises:
        InputError: it is not installed in the environment of Teho.
    """
    for name in ("numpy", "pandas"):
        # The command line of Teho blocks these, because Teho itself needs neither of them.
        if sys.modules.get(name, sys) is None:
            del sys.modules[name]
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise InputError(
            f"--to {package}: Teho cannot import this package ({error})",
            next_step=f"`pip install {package}` in the environment that has Teho",
        ) from error


def points_of(report: Report, after_s: float, until_s: float) -> Iterator[Point]:
    """Yield the time of each bin of the plots, and the values of all nodes and GPUs.

    Args:
        report: with its plots.
        after_s: only bins whose middle is later.
        until_s: only bins that end before, so that running bins are complete.
    """
    times = report.plots[0].elapsed_s if report.plots else []
    half_s = times[0] if times else 0.0
    for place, elapsed_s in enumerate(times):
        if elapsed_s <= after_s or elapsed_s + half_s > until_s:
            continue
        values = {
            f"{PREFIX}{_named(plot.key)}/{series.label}": value
            for plot in report.plots
            for series in plot.series
            if (value := series.values[place]) is not None
        }
        if values:
            yield Point(elapsed_s, values)


def _named(metric: str) -> str:
    """Return the name of a plotted metric; a counter is plotted as its rate."""
    is_counter = METRICS_BY_NAME[metric].kind == "counter"
    return f"{metric}_per_s" if is_counter else metric


def facts_of(report: Report) -> tuple[dict[str, float], dict[str, str]]:
    """Return the facts that are numbers, and the others, by their names."""
    numbers: dict[str, float] = {}
    words: dict[str, str] = {"verdict": report.verdict, "command": report.command}
    for fact in report.facts:
        if is_number(fact.value) and isinstance(fact.value, (int, float)):
            numbers[f"{_WHOLE}{fact.key}"] = fact.value
        elif isinstance(fact.value, str) and fact.value:
            words[fact.key] = fact.value
    return numbers, {f"{_WHOLE}{key}": value for key, value in words.items() if value}


def prose_of(report: Report) -> str:
    """Return the report as Markdown: the verdict, the findings with their advice, the facts."""
    lines = [f"**{report.verdict}**", ""]
    for finding in report.findings:
        lead = f"- **{SEVERITY_WORDS[finding.severity.value]}:** {finding.sentence}"
        lines.append(f"{lead} {finding.action}".rstrip())
    lines += ["", "| figure | value |", "|---|---|"]
    for fact in report.facts:
        if fact.value is not None and not fact.aside:
            note = f" ({fact.note})" if fact.note else ""
            value = labelled_value(fact.value, fact.unit)
            lines.append(f"| {fact.label or fact.key} | {value}{note} |")
    return "\n".join([*lines, ""])
