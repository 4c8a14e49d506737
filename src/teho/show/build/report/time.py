"""Tables of a Python program's time: activities, lines and phases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from teho.explain.lines import own_lines, sections_s, share_interval
from teho.model.document import Cell, Column, Table
from teho.model.program import OwnLine, Program
from teho.model.watched import WatchedProcess
from teho.show.build.layout import column, table
from teho.units import format_duration

__all__ = ["NOT_SAMPLED", "is_partly_sampled", "time_tables"]

_LEAST_PERCENT = 1.0
"""Smaller shares of the time are left out."""
_MOST_LINES = 12
_FEW_LINES = 4
"""Lines that are shown if not all of them fit on the screen."""
NOT_SAMPLED = "not sampled"
"""Activity of the time before the first sample and after the last one."""
_NOT_SAMPLED_NOTE = (
    " The row “not sampled” shows the time before the first sample and after the last one."
)
_SMALL_PART = 0.5
_CHANGED_POINTS = 15.0
"""Least change of a line's share from the first to the last quarter that is shown."""


def time_tables(program: Program | None, processes: int, elapsed_s: float = 0.0) -> Iterable[Table]:
    """Yield tables of the main thread of the process that ran longest.

    Args:
        program: None if no Python process was sampled.
        processes: the number of sampled processes, with workers and launchers.
        elapsed_s: run time; the title says if the process ran for a small part of it.
    """
    if program is None:
        return
    main = program.mains[0]
    process = main.process
    rows: list[dict[str, Cell]] = [
        {
            "doing": spent.doing.value,
            **_share(process, spent.wall_s),
            "wall_s": spent.wall_s,
            "line": spent.lines[0][0].short_place if spent.lines else "",
        }
        for spent in main.spent
        if _counts(process, spent.wall_s)
    ]
    if is_partly_sampled(process):
        share = 100 * process.not_sampled_s / process.wall_s
        rows.append(
            {
                "doing": NOT_SAMPLED,
                "share_percent": share,
                "wall_s": process.not_sampled_s,
                "line": "",
            }
        )
    yield Table(
        key="time",
        title=_title(process, elapsed_s),
        columns=(
            Column(key="doing", label="Activity"),
            Column(key="share_percent", label="Share", unit="%", decimals=0),
            Column(key="interval", label="95 % CI"),
            Column(key="wall_s", label="Time", unit="s"),
            Column(key="line", label="Top line"),
        ),
        rows=tuple(rows),
        note=_how(process, processes) + (_NOT_SAMPLED_NOTE if is_partly_sampled(process) else ""),
    )
    if table := _line_table(process):
        yield table
    if process.phases:
        yield _phase_table(process)


def _title(process: WatchedProcess, elapsed_s: float) -> str:
    if process.wall_s >= _SMALL_PART * elapsed_s:
        return "Where the time went"
    return (
        f"Where the time of the Python process went (it ran for {format_duration(process.wall_s)})"
    )


def _share(process: WatchedProcess, wall_s: float) -> dict[str, Cell]:
    """Return a share of the time of a process, with its interval if it is known."""
    cells: dict[str, Cell] = {"share_percent": 100 * wall_s / process.wall_s}
    sampled_percent = 100 * wall_s / process.seen_s
    samples = process.independent_samples
    interval = share_interval(sampled_percent, samples) if process.from_outside else None
    if interval:
        low, high = (end * process.seen_s / process.wall_s for end in interval)
        cells |= {"interval": f"{low:.0f}–{high:.0f}", "low_percent": low, "high_percent": high}
    return cells


def _counts(process: WatchedProcess, wall_s: float) -> bool:
    """Return whether a part of the time is long enough to be shown."""
    # A process that has just started has no time yet.
    return process.wall_s > 0 and 100 * wall_s / process.wall_s >= _LEAST_PERCENT


def is_partly_sampled(process: WatchedProcess) -> bool:
    """Return whether the time before the first sample and after the last one is worth a row."""
    return _counts(process, process.not_sampled_s)


def _how(process: WatchedProcess, processes: int) -> str:
    source = f"Python {process.python}, process {process.pid}"
    source += f" (one of {processes})" if processes > 1 else ""
    if process.from_outside:
        samples = round(sum(seen.samples for seen in process.stacks))
        return (
            f"{source}: {samples} samples of the main thread. The column 95 % CI shows confidence "
            "intervals, which depend on the number of samples."
        )
    why = f": {process.why_inside}" if process.why_inside else ""
    return (
        f"{source}, sampled by a thread inside the process{why}. Lines that take less than 5 ms "
        "cannot be measured separately: the time of such a line may be counted for the next line."
    )


def _line_table(process: WatchedProcess) -> Table | None:
    """Return the lines of the program itself, by section."""
    lines = [line for line in own_lines(process) if _counts(process, line.total_s)]
    # A line that calls several sections, such as `main()`, belongs to none of them.
    places = [(line.frame.file, line.frame.line) for line in lines]
    lines = [
        line
        for line, place in zip(lines, places, strict=True)
        if _counts(process, line.own_s) or places.count(place) == 1
    ]
    longest = sorted(lines, key=lambda line: -line.total_s)[:_MOST_LINES]
    rows: list[dict[str, Cell]] = []
    for section, wall_s in sections_s(process).items():
        own = [line for line in longest if line.section is section]
        if own:
            share = 100 * wall_s / process.wall_s
            rows.append(_EMPTY | {"line": section.value, "total_percent": share})
            rows += [_line_row(process, line) for line in own]
    if not rows:
        return None
    changes = any(row["change"] for row in rows)
    return Table(
        key="lines",
        title="Lines of the program",
        columns=(
            Column(key="line", label="Line"),
            Column(key="total_percent", label="Total", unit="%", decimals=0, spare=True),
            Column(key="share_percent", label="Self", unit="%", decimals=0),
            Column(key="interval", label="95 % CI", spare=True),
            *([Column(key="change", label="First → last quarter")] if changes else []),
            Column(key="code", label="Code"),
            Column(key="doing", label="Activity", aside=True),
        ),
        rows=tuple(rows),
        few=_longest(rows),
        note=_LINES_NOTE + (_CHANGE_NOTE if changes else ""),
    )


def _longest(rows: Sequence[dict[str, Cell]]) -> tuple[int, ...]:
    """Return the rows of the lines with the most time of their own, longest first."""
    own = {
        at: share for at, row in enumerate(rows) if isinstance(share := row["share_percent"], float)
    }
    return tuple(sorted(own, key=lambda at: -own[at])[:_FEW_LINES])


_LINES_NOTE = (
    "The column Self shows the time in the line and in the library functions that the line calls. "
    "The column Total also includes the time in your own functions that the line calls."
)
_CHANGE_NOTE = (
    " The column First → last quarter shows how Self changed from the first quarter of the run "
    "to the last quarter."
)
_EMPTY: dict[str, Cell] = {
    "line": "", "total_percent": "", "share_percent": "", "interval": "", "change": "", "code": "",
    "doing": "",
}  # fmt: skip


def _line_row(process: WatchedProcess, line: OwnLine) -> dict[str, Cell]:
    row = _EMPTY | {
        "line": f"  {line.frame.short_place}",
        "total_percent": 100 * line.total_s / process.wall_s,
        "code": line.frame.text or line.frame.function,
        "doing": line.doing.value,
    }
    if _counts(process, line.own_s):
        row |= _share(process, line.own_s)
    parts = line.parts_percent
    if parts and abs(parts[-1] - parts[0]) >= _CHANGED_POINTS:
        row["change"] = f"{parts[0]:.0f} → {parts[-1]:.0f} %"
    return row


def _phase_table(process: WatchedProcess) -> Table:
    """Return the time of each phase that the program marks."""
    outside_s = max(0.0, process.wall_s - sum(process.phases.values()))
    phases = [*sorted(process.phases.items(), key=lambda pair: -pair[1]), ("outside", outside_s)]
    return table(
        "phases",
        "Phases",
        phases,
        column("phase", "Phase", lambda pair: pair[0]),
        column("share_percent", "Share", lambda pair: 100 * pair[1] / process.wall_s,
               unit="%", decimals=1),
        column("wall_s", "Time", lambda pair: pair[1], unit="s"),
        note="Measured by `teho.phase`. The time of a phase excludes the phases inside it.",
    )  # fmt: skip
