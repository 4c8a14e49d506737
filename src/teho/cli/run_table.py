"""Recordings as lines of a table, for `teho list` and `teho rm`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from teho.errors import NewerFormatError, RecordingError, UnreadableError

if TYPE_CHECKING:
    from teho.model.run import Run

__all__ = ["MOST_JUDGED", "RunTable", "run_row"]

MOST_JUDGED = 30
"""Number of runs up to which a table has their verdicts."""
_HEADS = (
    "Run", "Began", "Time", "Ended", "Nodes", "Tasks", "GPUs", "Verdict", "Host", "User",
    "Command",
)  # fmt: skip
_RIGHT = frozenset({"Time", "Nodes", "Tasks", "GPUs"})
"""Columns that are aligned to the right."""
_LEFT_OUT = ("Tasks", "Nodes", "GPUs", "Time", "Began", "Ended", "User", "Host")
"""Columns that a narrow terminal does not have, the first first. The id begins with the date."""
_CUT = {"Verdict": 14, "Command": 12}
"""Columns that are cut in a narrow terminal, and the width that they have at least."""
_GAP = "  "


class RunTable:
    """The lines of some recordings, without columns that no line needs."""

    def __init__(self, runs: Sequence[tuple[Path, Run | None]], *, is_full: bool = False) -> None:
        """Make the lines.

        Args:
            runs: folder and description of each recording; without one, it is damaged.
            is_full: whether the host and the user are shown even if they are always the same.
        """
        rows = [run_row(path, run) for path, run in runs]
        self.verdicts = _verdicts(runs) if len(runs) <= MOST_JUDGED else [""] * len(runs)
        cells = [
            _cells(row, run, verdict)
            for row, (_, run), verdict in zip(rows, runs, self.verdicts, strict=True)
        ]
        by_head = dict(zip(_HEADS, zip(*cells, strict=True), strict=True)) if cells else {}
        self._columns = {
            head: list(column)
            for head, column in by_head.items()
            if _is_shown(head, column, is_full=is_full)
        }
        self._zone = datetime.now().astimezone().tzname() or "local time"

    @property
    def titles(self) -> list[str]:
        """The headings; the time has its zone."""
        return [f"{head} ({self._zone})" if head == "Began" else head for head in self._columns]

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """The cells of each line."""
        return list(zip(*self._columns.values(), strict=True))

    def lines(self, room: int | None = None) -> list[str]:
        """Lay out the headings and the lines.

        In a narrow terminal, times are without the year, and columns are left out or cut, so that
        the verdict and the command stay.

        Args:
            room: columns of the terminal; None: any number.
        """
        columns = {
            head: [title, *cells]
            for title, (head, cells) in zip(self.titles, self._columns.items(), strict=True)
        }
        widths = {head: max(map(len, cells)) for head, cells in columns.items()}
        if room is not None:
            _fit(columns, widths, room)
        lines = []
        for cells in zip(*columns.values(), strict=True):
            sides = [
                f"{_cut(cell, widths[head]):{'>' if head in _RIGHT else '<'}{widths[head]}}"
                for head, cell in zip(columns, cells, strict=True)
            ]
            line = _GAP.join(sides).rstrip()
            lines.append(line if room is None else _cut(line, room))
        return lines


def _fit(columns: dict[str, list[str]], widths: dict[str, int], room: int) -> None:
    """Leave out columns and cut cells until the lines fit; change both dictionaries."""

    def least() -> int:
        own = (min(width, _CUT.get(head, width)) for head, width in widths.items())
        return sum(own) + len(_GAP) * (len(widths) - 1)

    if least() > room and "Began" in columns:
        heading, *times = columns["Began"]
        columns["Began"] = [heading, *(time[len("2026-") :] for time in times)]
        widths["Began"] = max(map(len, columns["Began"]))
    for head in _LEFT_OUT:
        if least() <= room:
            break
        if head in columns:
            del columns[head], widths[head]
    spare = room - least()
    for head in ("Verdict", "Command"):
        if head in widths:
            small = min(widths[head], _CUT[head])
            more = min(widths[head] - small, max(spare, 0))
            widths[head] = small + more
            spare -= more


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(width - 1, 0)]}…"


def run_row(path: Path, run: Run | None) -> dict[str, Any]:
    """Return what `teho list --format json` has of a recording."""
    from teho.store.owner import owner_of
    from teho.store.read import run_state

    if run is None:
        return {"id": path.name, "state": _why_unread(path), "path": str(path)}
    end = run.end
    return {
        "id": run.id,
        "name": run.name,
        "state": run_state(run, path).value,
        "started_at": run.started_at.isoformat(),
        "elapsed_s": end.elapsed_s if end else None,
        "exit_code": end.exit_code if end else None,
        "signal": end.signal if end else None,
        "nodes": max(len(run.nodes), len(run.step.hosts) if run.step else 0),
        "tasks": run.step.task_count if run.step else 1,
        "gpus": sum(len(node.devices) for node in run.nodes),
        "tags": run.tags,
        "host": run.host,
        "user": owner_of(path),
        "command": list(run.command),
        "path": str(path),
    }


def _why_unread(path: Path) -> str:
    """Return `newer`, `unreadable` or `damaged`."""
    from teho.store.read import read_run

    try:
        read_run(path)
    except RecordingError as error:
        known = {NewerFormatError: "newer", UnreadableError: "unreadable"}
        return known.get(type(error), "damaged")
    return "damaged"


def _cells(row: dict[str, Any], run: Run | None, verdict: str) -> list[str]:
    import shlex

    from teho.units import format_duration

    if run is None:
        return [row["id"], "", "", row["state"], *[""] * (len(_HEADS) - 4)]
    return [
        row["id"],
        run.started_at.astimezone().strftime("%Y-%m-%d %H:%M"),
        "" if row["elapsed_s"] is None else format_duration(row["elapsed_s"]),
        "imported" if run.imported else _ending(row, run),
        # 1 is the usual number, and not shown.
        *(str(row[key]) if row[key] > 1 else "" for key in ("nodes", "tasks")),
        str(row["gpus"] or ""),
        verdict,
        row["host"],
        row["user"],
        _log(run) if run.imported else shlex.join(run.command).replace("\n", " "),
    ]


def _log(run: Run) -> str:
    """Return the logs from which a run was imported."""
    return f"({', '.join(run.imported.files)})" if run.imported else ""


def _is_shown(head: str, cells: Sequence[str], *, is_full: bool) -> bool:
    """Return whether a column is needed: a count above 1, or several hosts or users."""
    if head in {"Verdict", "Nodes", "Tasks"}:
        return any(cells)
    return is_full or head not in {"Host", "User"} or len(set(cells) - {""}) > 1


def _verdicts(runs: Sequence[tuple[Path, Run | None]]) -> list[str]:
    from teho.config.settings import load_settings
    from teho.show.judged import judge_of, judged
    from teho.store.index import verdicts_of

    settings = load_settings()
    described = dict(runs)
    found = verdicts_of(
        settings.home_directory,
        described,
        judge_of(settings.thresholds),
        lambda path: judged(path, settings, described[path]),
    )
    return [one.words for one in found]


def _ending(row: dict[str, Any], run: Run) -> str:
    end = run.end
    if end and end.on_purpose:
        return end.on_purpose
    if row["signal"] is not None:
        return f"signal {row['signal']}"
    if row["exit_code"] is not None:
        return "ok" if row["exit_code"] == 0 else f"exit {row['exit_code']}"
    if end and end.job_state:
        state = end.job_state.replace("_", " ")
        return "job still running" if state == "running" else f"job {state}"
    # The recorder of `teho always` is ended with its job; the accounting knows how the job ended.
    is_over = run.is_automatic and row["state"] == "interrupted"
    return "job ended" if is_over else str(row["state"])
