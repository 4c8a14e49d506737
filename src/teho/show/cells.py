"""Values of a document as text, for the terminal and for HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from itertools import groupby

import msgspec

from teho.model.document import Cell, Column, Table
from teho.model.finding import Abstention, Certainty, Evidence, Finding, Lack, Moments
from teho.model.missing import Missing, Reason
from teho.patterns import lazy_pattern
from teho.units import convert, format_quantity

__all__ = [
    "BUSY_MEANS",
    "FIGURE",
    "MARKS",
    "SEVERITY_WORDS",
    "bands",
    "between",
    "cell_text",
    "column_text",
    "counted_evidence",
    "evidence_of",
    "explanations",
    "format_moment",
    "heading_unit",
    "is_command",
    "is_number",
    "is_numeric",
    "labelled_value",
    "not_judged",
    "plain",
    "quantity",
    "when_text",
    "without_empty",
    "without_shared",
    "worst_first",
]

BUSY_MEANS = (
    "The GPU is busy while at least one kernel (a function on the GPU) runs. Busy does not show "
    "how much of the GPU these kernels use."
)
"""Note for every table with the busy share of a GPU."""

_NOTHING = "\N{EN DASH}"
"""Text of a cell that does not apply."""

_COUNTED = {"cores", "epochs", "files", "ranks", "workers"}
"""Labels of evidence that are a noun in the plural: their text is `2 cores`, not `cores 2`."""

_MOST_TIMES = 2
"""Number of times that are written one by one."""

FIGURE = r"(?<!\w)\d[\d.,]*\s\S{1,4}(?!\S)"
"""Pattern of a number with its unit, which are kept on one line."""

MARKS = {
    "critical": "✗", "warning": "!", "remark": "i", "hint": "·", "good": "✓", "unknown": "?",
}  # fmt: skip
SEVERITY_WORDS = {
    "critical": "Critical",
    "warning": "Warning",
    "remark": "Remark",
    "hint": "Hint",
    "good": "Good",
    "unknown": "Not judged",
}
_COMMAND = lazy_pattern(
    r"(#\$|#SBATCH|accelerate|bash|cat|cd|conda|cp|dcgmi|deepspeed|duckdb|export|find|git|head|lfs|"
    r"mamba|micromamba|module|mpirun|nsys|nvidia-smi|pip|py-spy|python3?|qdel|qstat|qsub|quota|rm|"
    r"rocm-smi|sacct|salloc|sbatch|scancel|scontrol|seff|sinfo|source|squeue|tar|timedatectl|"
    r"ulimit|unset|(?:srun|torchrun)(?=.* [^- ])|"
    r"teho(?! (?:compare|energy|launch|run|scale|tune)\b(?!.* -- ))) .+"
)
"""A command, with the program that it starts."""
_PLACEHOLDER = lazy_pattern(r"…|\b(?:CMD|COMMAND|FILE|NAME|PID|TYPE)\b")
"""A part of a command that the reader has to replace."""
_WHY = {
    Reason.ABSENT: "this machine does not have this metric",
    Reason.UNSUPPORTED: "the device or its driver does not report this metric",
    Reason.FORBIDDEN: "this user is not allowed to read this metric",
    Reason.FAILED: "this metric could not be read",
    Reason.UNRECORDED: "this metric was not measured",
}


def format_moment(when: datetime) -> str:
    """Write a time in the local time zone, with the date if it is not today."""
    local = when.astimezone()
    today = datetime.now(timezone.utc).astimezone().date()
    return f"{local:%H:%M}" if local.date() == today else f"{local:%Y-%m-%d %H:%M}"


def not_judged(abstentions: Iterable[Abstention]) -> list[str]:
    """Return a line for each reason: the rules that could not judge, and what they lacked."""
    kinds: dict[str, dict[str, None]] = {}
    lacking: dict[str, dict[str, dict[str, None]]] = {}
    for abstention in abstentions:
        for lack in abstention.lacks or [Lack("", "", abstention.lacked)]:
            kinds.setdefault(lack.why, {})[abstention.kind] = None
            lacking.setdefault(lack.why, {}).setdefault(lack.where, {})[lack.what] = None
    return [
        f"Reason: {why}. {_lacking(places)}{'Rules' if len(kinds[why]) > 1 else 'Rule'} without "
        f"a result: {', '.join(kinds[why])}."
        for why, places in lacking.items()
    ]


_QUALIFIED = lazy_pattern(r", (highest|mean|lowest)$")


def _lacking(whats: Mapping[str, Iterable[str]]) -> str:
    """Return the missing signals: `Missing for GPUs 0–3 on r01g01: SM activity. `."""
    return "".join(
        f"Missing for {where}: {'; '.join(map(_qualified, what))}. "
        for where, what in whats.items()
        if where
    )


def _qualified(label: str) -> str:
    """Return `memory used (highest)`, which is one item in a list."""
    return _QUALIFIED.sub(r" (\1)", label)


def plain(text: str) -> str:
    r"""Return a text that is safe to print.

    A command line or a host name can have any byte. Control characters, marks that change the
    direction of writing, and bytes that are not text are escaped, such as `\x1b`.
    """
    if text.isprintable():
        return text
    return "".join(
        char
        if char.isprintable() or char == "\N{NO-BREAK SPACE}"
        else char.encode("unicode_escape").decode()
        for char in text
    )


def is_number(cell: Cell) -> bool:
    """Return whether a cell has a figure."""
    return isinstance(cell, (int, float))


def is_command(code: str) -> bool:
    """Return whether a text is a whole command or line of a script, which can be copied."""
    return bool(_COMMAND.fullmatch(code)) and not _PLACEHOLDER.search(code)


def quantity(value: float, unit: str) -> str:
    """Write a number with its unit; a number that is not finite is `not a number`."""
    return plain(format_quantity(value, unit)) if math.isfinite(value) else "not a number"


def between(least: float, most: float, unit: str) -> str:
    """Write a range; equal units are written once: `17.1 to 26.5 FLOP/byte`."""
    low, high = quantity(least, unit), quantity(most, unit)
    figure, _, low_unit = low.rpartition(" ")
    return high if low == high else f"{figure if high.endswith(f' {low_unit}') else low} to {high}"


def cell_text(cell: Cell, unit: str = "") -> str:
    """Write a value with its unit."""
    if cell is None:
        return _NOTHING
    if isinstance(cell, Missing):
        return str(cell)
    if isinstance(cell, str):
        return plain(cell)
    return quantity(cell, unit)


def labelled_value(cell: Cell, unit: str = "") -> str:
    """Write a value that follows its label: `not known (no permission)` if it is missing."""
    if not isinstance(cell, Missing):
        return cell_text(cell, unit)
    return "not available" if cell.reason is Reason.ABSENT else f"not known ({cell})"


def column_text(cell: Cell, column: Column) -> str:
    """Write a cell of a table; without its unit, if the heading of the column has it."""
    if not isinstance(cell, (int, float)) or not math.isfinite(cell):
        return cell_text(cell)
    value = convert(cell, column.unit, column.shown_in)
    if column.decimals is not None:
        # + 0.0 makes 0.0 out of -0.0, which would be written with a sign.
        return f"{round(value, column.decimals) + 0.0:,.{column.decimals}f}"
    return format_quantity(value, column.shown_in or column.unit)


def heading_unit(column: Column) -> str:
    """Return the unit for the heading of a column; empty if the cells have it."""
    return (column.shown_in or column.unit) if column.decimals is not None else ""


def is_numeric(column: Column, rows: tuple[dict[str, Cell], ...]) -> bool:
    """Return whether a column has figures, which are aligned to the right."""
    return bool(column.unit) or any(is_number(row.get(column.key)) for row in rows)


def bands(columns: tuple[Column, ...]) -> list[tuple[str, tuple[Column, ...]]]:
    """Group neighbours with the same band; a column without a band is a group."""
    groups: list[tuple[str, tuple[Column, ...]]] = []
    for band, members in groupby(columns, key=lambda column: column.band):
        if band:
            groups.append((band, tuple(members)))
        else:
            groups.extend(("", (column,)) for column in members)
    return groups


def without_shared(table: Table) -> tuple[list[str], tuple[Column, ...]]:
    """Separate the columns whose text or count is the same in every row.

    If there is only one row, its first column and its counts are not separated, and no column is if
    only the first would remain.

    Returns:
        The equal texts with their labels, to be written next to the title, and the other columns.
    """
    shared, columns = [], []
    for position, column in enumerate(table.columns):
        cells = [row.get(column.key) for row in table.rows]
        kinds = str if len(cells) == 1 else (str, int)
        same = isinstance(cells[0], kinds) and cells.count(cells[0]) == len(cells)
        if same and not column.unit and (position or len(cells) > 1):
            shared.append(f"{plain(column.label)} {plain(str(cells[0]))}".lstrip())
        else:
            columns.append(column)
    if len(table.rows) == len(columns) == 1:
        return [], table.columns
    return shared, tuple(columns)


def without_empty(table: Table) -> Table | None:
    """Return a table without its empty columns; None if no figure is left.

    A column is empty if it has no value, or if it is an amount of data that is 0 in every row.
    """
    kept = tuple(
        column
        for column in table.columns
        if any(_has_content(row.get(column.key), column.unit) for row in table.rows)
    )
    if len(kept) == len(table.columns):
        return table
    had_figures = any(is_numeric(column, table.rows) for column in table.columns)
    if not kept or (had_figures and not any(is_numeric(column, table.rows) for column in kept)):
        return None
    return msgspec.structs.replace(table, columns=kept)


def _has_content(cell: Cell, unit: str) -> bool:
    if cell is None or isinstance(cell, Missing):
        return False
    return bool(cell) if unit in {"bytes", "bytes/s"} else True


def worst_first(table: Table) -> list[int]:
    """Return the indices of all rows: the outliers first, then the others in order."""
    odd = set(table.outliers)
    return [*table.outliers, *(place for place in range(len(table.rows)) if place not in odd)]


def explanations(table: Table) -> list[str]:
    """Explain each missing value of a table once: `not offered (energy): no counter`."""
    where: dict[tuple[str, str], list[str]] = {}
    for column in table.columns:
        subject = plain(column.band or column.label)
        for row in table.rows:
            cell = row.get(column.key)
            if isinstance(cell, Missing):
                why = (str(cell), plain(cell.detail) or _WHY[cell.reason])
                subjects = where.setdefault(why, [])
                if subject not in subjects:
                    subjects.append(subject)
    return [f"{words} ({', '.join(names)}): {why}" for (words, why), names in where.items()]


def when_text(moments: Moments) -> str:
    """Write when a finding was seen: `from 2 min to 5 min`, or the number of times."""
    times = moments.spans_s
    if len(times) <= _MOST_TIMES:
        return ", ".join(f"from {_moment(begin)} to {_moment(end)}" for begin, end in times)
    whole_s = sum(end - begin for begin, end in times)
    return (
        f"{len(times)} times between {_moment(times[0][0])} and {_moment(times[-1][1])}, "
        f"{quantity(whole_s, 's')} in all"
    )


def _moment(elapsed_s: float) -> str:
    return quantity(elapsed_s, "s") if elapsed_s else "0"


def counted_evidence(item: Evidence) -> str:
    """Write evidence whose label is what it counts: `0 workers`; empty for other evidence."""
    if item.label not in _COUNTED or not isinstance(item.value, float):
        return ""
    noun = item.label[:-1] if item.value == 1 else item.label
    return f"{format_quantity(item.value, '')} {noun}"


def evidence_of(finding: Finding) -> tuple[Evidence, ...]:
    """Return the evidence of a finding; in front, the time that it could save and its certainty.

    A saving below 0.5 % is left out, and so is a certainty of `sure`.
    """
    least, most = (f"{percent:.0f}" for percent in finding.regain_percent or (0.0, 0.0))
    share = f"{least}\N{EN DASH}{most} %" if least != most else f"{most} %"
    share = f"up to {most} %" if least == "0" else share
    saving = () if most == "0" else (Evidence("could save", f"{share} of the run time"),)
    is_sure = finding.certainty is Certainty.SURE
    certainty = () if is_sure else (Evidence("certainty", finding.certainty.value),)
    return (*saving, *certainty, *finding.evidence)
