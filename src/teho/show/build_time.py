"""Where a Python program's time went, as a table."""

from __future__ import annotations

from collections.abc import Iterable

from teho.model.program import Program
from teho.model.watched import Frame, WatchedProcess
from teho.show.view import Cell, Column, Table

__all__ = ["time_tables"]

_LEAST_SHARE = 0.005
"""What takes less of the time is left out."""


def time_tables(program: Program | None, processes: int) -> Iterable[Table]:
    """Yield what the main thread of a program's longest process did, and in which lines.

    Args:
        program: None where no Python was looked into.
        processes: how many were, workers and launchers included.
    """
    if program is None:
        return
    main = program.mains[0]
    process = main.process
    rows: list[dict[str, Cell]] = []
    for spent in main.spent:
        if spent.wall_s < _LEAST_SHARE * process.wall_s:
            continue
        first: dict[str, Cell] = {"doing": spent.doing.value}
        share = 100 * spent.wall_s / process.wall_s
        first |= {"share_percent": share, "wall_s": spent.wall_s}
        places = [
            _place(frame)
            for number, (frame, wall_s) in enumerate(spent.lines)
            if number == 0 or wall_s >= _LEAST_SHARE * process.wall_s
        ]
        rows.append(first | (places[0] if places else _NOWHERE))
        rows += [_AS_BEFORE | place for place in places[1:]]
    yield Table(
        key="time",
        title="Where the time went",
        columns=(
            Column(key="doing", label="Main thread"),
            Column(key="share_percent", label="Time", unit="%", decimals=1),
            Column(key="wall_s", label="Time", unit="s"),
            Column(key="line", label="Line"),
            Column(key="code", label="Code"),
        ),
        rows=tuple(rows),
        note=f"Of Python {process.python}, process {process.pid}"
        + (f" (one of {processes})" if processes > 1 else "")
        + ", by looking at its stack up to 20 times a second.",
    )
    if process.phases:
        yield _phase_table(process)


def _phase_table(process: WatchedProcess) -> Table:
    """Tell how much time went into what the program calls its phases."""
    outside_s = max(0.0, process.wall_s - sum(process.phases.values()))
    rows = [*sorted(process.phases.items(), key=lambda pair: -pair[1]), ("outside", outside_s)]
    return Table(
        key="phases",
        title="Phases",
        columns=(
            Column(key="phase", label="Phase"),
            Column(key="share_percent", label="Time", unit="%", decimals=1),
            Column(key="wall_s", label="Time", unit="s"),
        ),
        rows=tuple(
            {"phase": name, "share_percent": 100 * wall_s / process.wall_s, "wall_s": wall_s}
            for name, wall_s in rows
        ),
        note="By the program's `teho.phase`; each without those within it.",
    )


_NOWHERE: dict[str, Cell] = {"line": "", "code": ""}
_AS_BEFORE: dict[str, Cell] = {"doing": "", "share_percent": "", "wall_s": ""}


def _place(frame: Frame) -> dict[str, Cell]:
    name = frame.file.rpartition("/")[2]
    return {"line": f"{name}:{frame.line}", "code": frame.text or frame.function}
