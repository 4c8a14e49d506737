"""Lists of jobs: a line for each job, with what it used of what it requested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import msgspec

from teho.explain.waste.lines import largest_waste
from teho.model.digest import JobLine, JobList
from teho.model.document import Document, Table, VerdictSeverity
from teho.model.job import JobState
from teho.show.build.jobs import wall_time
from teho.show.build.layout import column, document, table
from teho.show.cells import column_text, format_moment, plain, without_shared
from teho.units import counted, format_bytes, format_count, plural

__all__ = ["jobs_list_document", "tasks_document"]

_STATE_LEAST = 24
"""Columns of a terminal that the column State needs at least, if its texts are longer."""
_TASKS_MOST = 100
"""Number of tasks of an array that a report lists."""


def jobs_list_document(
    found: JobList, *, period: str, most: int, columns: int | None = None
) -> Document:
    """Lay out the jobs of a period.

    Args:
        found: the jobs, in the order of the rows.
        period: the period in words, such as `the last 7 days`.
        most: number of rows to show.
        columns: columns of the terminal, in which each job needs one line; None: any number. If
            there is little room, the table has shares instead of amounts, and fewer columns.
    """
    reportable = sum(bool(line.look) for line in found.jobs)
    return document(
        title="teho jobs",
        verdict=f"{counted(_tasks(found.jobs), 'job')} in {period}{_counts(found.jobs)}.",
        verdict_severity=_severity(found.jobs),
        tables=tuple(_tables(found.jobs, most, columns)),
        notes=found.notes,
        commands=("`teho report JOB` reports on one of these jobs.",) if reportable else (),
    )


def tasks_document(
    reference: str, lines: Iterable[JobLine], *, columns: int | None = None
) -> Document:
    """Lay out the tasks of an array, or the components of a heterogeneous job.

    Args:
        reference: number of the job.
        lines: of its tasks or components.
        columns: as in `jobs_list_document`.
    """
    found = list(lines)
    hint = f"`teho report {reference}_TASK` reports on one task"
    made = _table(found, _TASKS_MOST, hint, columns)
    first = found[0].id
    return document(
        title=f"job {reference}",
        verdict=f"Job {reference} has {counted(_tasks(found), 'part')}{_counts(found)}.",
        verdict_severity=_severity(found),
        tables=(msgspec.structs.replace(made, title="Tasks or components"),),
        notes=("Teho did not record this job. The values are from the accounting.",),
        commands=(f"`teho report {first}` reports on the first of these jobs.",),
    )


def _counts(lines: Sequence[JobLine]) -> str:
    states = Counter[str]()
    for line in lines:
        states[line.state.value.replace("_", " ")] += line.tasks
    text = ", ".join(f"{count:,} {state}" for state, count in states.most_common())
    return f": {text}" if text else ""


def _tasks(lines: Sequence[JobLine]) -> int:
    return sum(line.tasks for line in lines)


def _severity(lines: Sequence[JobLine]) -> VerdictSeverity:
    bad = (JobState.FAILED, JobState.TIMED_OUT, JobState.OUT_OF_MEMORY, JobState.NODE_FAILED)
    return "warning" if any(line.state in bad for line in lines) else "remark"


def _tables(lines: Sequence[JobLine], most: int, columns: int | None) -> Iterator[Table]:
    if lines:
        yield _table(lines, most, "`--last {}` shows all", columns)


class _Form(NamedTuple):
    """A form of the table: how much room it needs."""

    name_most: int = 16
    has_amounts: bool = True
    """Whether there are amounts, not only shares of the request."""
    left_out: frozenset[str] = frozenset()
    """Keys of the columns that are left out; `limit`: the time limit in the column Time."""


_FORMS = (
    _Form(),
    _Form(left_out=frozenset({"recording"})),
    _Form(has_amounts=False),
    _Form(has_amounts=False, left_out=frozenset({"recording"})),
    _Form(10, has_amounts=False, left_out=frozenset({"recording"})),
    _Form(10, has_amounts=False, left_out=frozenset({"recording", "cost"})),
    _Form(10, has_amounts=False, left_out=frozenset({"recording", "cost", "wasted"})),
    _Form(10, has_amounts=False, left_out=frozenset({"recording", "cost", "wasted", "limit"})),
    _Form(
        10,
        has_amounts=False,
        left_out=frozenset({"recording", "cost", "wasted", "limit", "memory"}),
    ),
)
"""The form that needs the most room first."""


def _table(lines: Sequence[JobLine], most: int, hint: str, columns: int | None) -> Table:
    """Return a table of the first lines, in the first form that fits.

    Args:
        lines: all lines.
        most: number of rows.
        hint: how to see the others; `{}` is the number of all lines.
        columns: columns of the terminal; None: any number.
    """
    shown = lines[:most]
    made = _in_form(shown, _FORMS[0])
    for form in _FORMS[1:]:
        if columns is None or _least_width(made) <= columns:
            break
        made = _in_form(shown, form)
    left = len(lines) - len(shown)
    rest = f"and {left:,} more jobs: {hint.format(len(lines))}" if left else ""
    return msgspec.structs.replace(made, rest=rest)


def _least_width(made: Table) -> int:
    """Return the number of columns of a terminal that a table needs."""
    _, columns = without_shared(made)
    widths = [
        max(len(column.label), *(len(column_text(row[column.key], column)) for row in made.rows))
        for column in columns
        if not column.aside
    ]
    if columns[-1].key == "state":
        widths[-1] = min(widths[-1], _STATE_LEAST)
    return sum(widths) + 2 * (len(widths) - 1)


def _in_form(shown: Sequence[JobLine], form: _Form) -> Table:
    several_users = len({line.user for line in shown}) > 1
    has_amounts, left_out = form.has_amounts, form.left_out
    made = table(
        "jobs", "Jobs", shown,
        column("job", "Job", lambda line: plain(line.id)),
        column("name", "Name", lambda line: _cut(line.name, form.name_most)),
        column("user", "User", lambda line: plain(line.user) or None) if several_users else None,
        column("began", "Began", _began, aside=True),
        column("time", "Time", lambda line: _time(line, form)),
        column("cores", "Cores", _cores if has_amounts else _cores_share),
        None if "memory" in left_out else column(
            "memory", "Memory", _memory if has_amounts else _memory_share
        ),
        column("gpus", "GPUs", _gpus),
        column("billing", "Billing-hours", _billing, aside=True),
        None if "cost" in left_out else column("cost", "Cost", _cost),
        None if "wasted" in left_out else column("wasted", "Wasted", _wasted),
        None if "recording" in left_out else column(
            "recording", "Recorded", lambda line: "yes" if line.recordings else None
        ),
        column("state", "State", lambda line: _state(line, form)),
        only_known=True,
    )  # fmt: skip
    keys = {one.key for one in made.columns}
    return msgspec.structs.replace(made, note=_note(shown, form, keys))


def _note(lines: Sequence[JobLine], form: _Form, keys: AbstractSet[str]) -> str:
    parts = ["Cores: the mean number of used cores, and the number of cores of the job."]
    if not form.has_amounts:
        which = "Cores and memory" if "memory" in keys else "Cores"
        parts = [f"{which}: the share of the request that was used; `?` means not known."]
    if "memory" in keys and any(_is_bound(line) for line in lines):
        parts.append("Memory: ≤ means at most this value, the sum of the peaks of all tasks.")
    if any(line.gpus for line in lines):
        parts.append("GPUs: the mean use, if the site stores it (Jobstats).")
    if "wasted" in keys and any(_wasted(line) is None for line in lines):
        parts.append("Wasted: \N{EN DASH} means not judged.")
    return " ".join(parts)


def _cut(text: str, most: int) -> str | None:
    name = plain(text)
    return (name if len(name) <= most else f"{name[: most - 1].rstrip()}…") or None


def _state(line: JobLine, form: _Form) -> str:
    word = line.state.value.replace("_", " ")
    if line.state is JobState.UNKNOWN and line.state_as_written:
        word = plain(line.state_as_written)
    if line.look and line.state is JobState.COMPLETED and not form.has_amounts:
        return plain(line.look)  # the word would take the room of the problem
    if line.look and line.state in {JobState.COMPLETED, JobState.CANCELLED}:
        return f"{word}: {plain(line.look)}"
    return plain(line.look) or word


def _began(line: JobLine) -> str | None:
    return format_moment(line.started_at) if line.started_at else None


def _time(line: JobLine, form: _Form) -> str | None:
    if line.elapsed_s is None or line.started_at is None:
        return None
    write = wall_time if form.has_amounts else _rounded_time
    time = write(line.elapsed_s)
    if not line.time_limit_s or "limit" in form.left_out:
        return time
    return f"{time} of {write(line.time_limit_s)}"


def _rounded_time(seconds: float) -> str:
    """Write a length of time with one unit: `58 min`, `1.9 h`, `2 d`."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            value = f"{seconds / size:.1f}" if seconds < 9.95 * size else f"{seconds / size:.0f}"
            return f"{value.removesuffix('.0')} {unit}"
    return f"{seconds:.0f} s" if seconds else wall_time(seconds)


def _cores_share(line: JobLine) -> str | None:
    if not line.cores:
        return None
    return "?" if line.cores_used is None else f"{100 * line.cores_used / line.cores:.0f} %"


def _memory_share(line: JobLine) -> str | None:
    text = _memory(line)
    return text.partition(" of ")[0] if text else None


def _cores(line: JobLine) -> str | None:
    if not line.cores:
        return None
    used = "?" if line.cores_used is None else f"{line.cores_used:.1f}"
    return f"{used} of {line.cores}"


def _memory(line: JobLine) -> str | None:
    if not line.memory_bytes:
        return None
    used = line.memory_most_bytes or line.memory_least_bytes
    if not used:
        return f"? of {format_bytes(line.memory_bytes)}"
    bound = "≤ " if _is_bound(line) else "" if line.memory_most_bytes else "≥ "
    share = 100 * used / line.memory_bytes
    return f"{bound}{share:.0f} % of {format_bytes(line.memory_bytes)}"


def _is_bound(line: JobLine) -> bool:
    return (line.memory_most_bytes or 0) > (line.memory_least_bytes or 0)


def _gpus(line: JobLine) -> str | None:
    if not line.gpus:
        return None
    busy = "?" if line.gpu_busy_percent is None else f"{line.gpu_busy_percent:.0f} %"
    return f"{line.gpus} × {busy}"


def _cost(line: JobLine) -> str | None:
    if line.cost is None:
        return None
    if not line.cost_unit:
        return "free"
    return f"{format_count(line.cost)} {plural(line.cost_unit, line.cost)}"


def _wasted(line: JobLine) -> str | None:
    """Write the largest waste of a job; None: it was not judged."""
    found = largest_waste(line)
    if found is None:
        return None
    return f"{format_count(found.hours)} {found.unit}" if found.hours else "0"


def _billing(line: JobLine) -> str | None:
    return None if line.billing_hours is None else format_count(line.billing_hours)
