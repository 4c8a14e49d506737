"""A run, or all runs of a program, as text for a list."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

import msgspec

from teho.model.listed_run import Judged, ListedRun, Totals
from teho.patterns import lazy_pattern
from teho.show.portal.query import ListQuery, run_key
from teho.show.portal.spark import spark_line
from teho.show.portal.trend import Change, changes_of
from teho.show.portal.words import (
    OUTCOMES,
    finding_text,
    gpu_text,
    moment_text,
    quantity_text,
    seconds_text,
)

__all__ = [
    "COLUMNS",
    "Program",
    "Row",
    "known_columns",
    "program_of",
    "row_of",
    "short_command",
]

_STAMP_LENGTH = len("20261120-101944-")
"""The start of an id is the time, which a list shows in another column."""
_LONG = 24
"""Letters from which on a path is written without its first folders."""
_LONG_PATH = lazy_pattern(r"^((?:--?)?(?:[\w-]+=)?)/(?:[^/'\"]+/)+([^/'\"]+/[^/'\"]+)$")
"""An absolute path, perhaps as the value of an option; its last two parts are kept."""
_MOST_TAGS = 4
"""Tags of a run in the list."""
_BELOW = lazy_pattern(r"(\d+ (?:more finding|remark)s?) below\.$")
"""End of a verdict that says where the other findings are, in a report."""
_TONES = {"running": "accent", "failed": "critical", "interrupted": "warning", "damaged": "warning"}
"""Colour of a run without a verdict."""
COLUMNS = (
    ("began", "Began"),
    ("time", "Time"),
    ("gpus", "GPUs"),
    ("busy", "GPU busy"),
    ("energy", "GPU energy"),
    ("cost", "Cost"),
)
"""Columns of the list with figures: the name of their order, and their heading."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a list, as text."""

    run: ListedRun
    address: str
    title: str
    tone: str
    """Severity, which sets the colour of the mark."""
    mark: str
    """The verdict in a few words, or how the run ended."""
    sentence: str
    """The verdict; empty: it is not known."""
    command: str
    """The command without the folder of its program."""
    pace: str
    """Steps per second; a dash if they are not known."""
    cells: tuple[str, ...]
    """One for each of `COLUMNS`; a value that is not known is a dash."""
    key: str
    """Identifies the run in the address of a comparison."""
    tags: tuple[tuple[str, str], ...]
    """The first tags as `KEY=VALUE`, each with the address of the runs that have it."""


def known_columns(rows: Sequence[Row], sort: str = "") -> list[int]:
    """Return the positions of the columns in which a run has a value, or that are sorted by."""
    return [
        place
        for place, (name, _) in enumerate(COLUMNS)
        if name == sort or any(row.cells[place] != "–" for row in rows)
    ]


def short_command(command: str) -> str:
    """Return a command without the folder of its program, and with short paths.

    `/usr/bin/python /home/maija/study/programs/train.py` becomes `python …/programs/train.py`.
    """
    program, space, rest = command.partition(" ")
    if "'" in program or '"' in program:
        return command
    words = (
        _LONG_PATH.sub(r"\1…/\2", word) if len(word) >= _LONG else word for word in rest.split(" ")
    )
    return program.rpartition("/")[2] + space + " ".join(words)


def row_of(run: ListedRun, running: Judged | None = None, *, scope: str = "") -> Row:
    """Return a run as a row.

    Args:
        run: the run.
        running: its verdict until now, if it continues.
        scope: `group`: it is a shared run.
    """
    judged = run.judged or running
    outcome = OUTCOMES[run.outcome]
    if judged and judged.severity:
        mark = finding_text(judged.words)
        tone = judged.severity
        if run.outcome != "ok" and judged.severity in {"good", "unknown"}:
            mark, tone = outcome, _TONES[run.outcome]
    else:
        mark, tone = outcome, _TONES.get(run.outcome, "unknown")
    address = {"id": run.id, **({"by": run.user} if scope else {})}
    return Row(
        run=run,
        address=f"run?{urlencode(address)}",
        title=run.name or run.id[_STAMP_LENGTH:],
        tone=tone,
        mark=mark,
        sentence=_BELOW.sub(r"\1 in the report.", judged.verdict) if judged else "",
        command=short_command(run.command),
        pace=quantity_text(judged.steps_per_s if judged else None, "steps/s"),
        cells=_cells(run, judged),
        key=run_key(run, scope=scope),
        tags=tuple(
            (f"{name}={value}", ListQuery(scope=scope, tag=f"{name}={value}").address())
            for name, value in list(run.tags.items())[:_MOST_TAGS]
        ),
    )


def _cells(run: ListedRun, judged: Judged | None) -> tuple[str, ...]:
    return (
        moment_text(run.began_s) if run.began_s else "–",
        seconds_text(run.elapsed_s),
        f"{run.gpus} × {gpu_text(run.gpu)}" if run.gpus and run.gpu else str(run.gpus or "–"),
        quantity_text(judged.gpu_busy_percent if judged else None, "%"),
        quantity_text(judged.energy_j if judged else None, "J"),
        quantity_text(judged.cost, judged.cost_unit) if judged else "–",
    )


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """All runs of one command."""

    total: Totals
    newest: Row
    history: str
    """Address of the list with only these runs."""
    changes: tuple[Change, ...]
    """How the time changed from run to run."""
    spark: str
    """SVG."""


def program_of(query: ListQuery, total: Totals, runs: Sequence[ListedRun]) -> Program:
    """Return a program with the trend of its times.

    Args:
        query: the list that shows it.
        total: the sums of its runs.
        runs: its newest runs, oldest first; at least one.
    """
    ended = [run for run in runs if run.outcome == "ok" and run.elapsed_s]
    return Program(
        total=total,
        newest=row_of(runs[-1], scope=query.scope),
        history=query.address(by="", command=total.key),
        changes=tuple(changes_of(ended, scope=query.scope)),
        spark=spark_line([run.elapsed_s for run in ended]),
    )
