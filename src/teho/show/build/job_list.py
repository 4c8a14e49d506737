"""Lists of jobs: a line for each job, with what it used of what it requested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from teho.model.digest import JobLine, JobList
from teho.model.document import Document, Table, VerdictSeverity
from teho.model.job import JobState
from teho.show.build.jobs import wall_time
from teho.show.build.layout import column, document, table
from teho.show.cells import format_moment, plain
from teho.units import counted, format_bytes, format_count, format_duration

__all__ = ["jobs_list_document", "tasks_document"]

_NAME_MOST, _NARROW_NAME_MOST = 16, 10
_TASKS_MOST = 100
"""Number of tasks of an array that a report lists."""


def jobs_list_document(
    found: JobList, *, period: str, most: int, is_narrow: bool = False
) -> Document:
    """Lay out the jobs of a period.

    Args:
        found: the jobs, in the order of the rows.
        period: the period in words, such as `the last 7 days`.
        most: number of rows to show.
        is_narrow: whether there is little room, as on a terminal of 80 columns. The table then has
            percentages instead of amounts.
    """
    reportable = sum(bool(line.look) for line in found.jobs)
    return document(
        title="teho jobs",
        verdict=f"{counted(_tasks(found.jobs), 'job')} in {period}{_counts(found.jobs)}.",
        verdict_severity=_severity(found.jobs),
        tables=tuple(_tables(found.jobs, most, is_narrow=is_narrow)),
        notes=found.notes,
        commands=("`teho report JOB` reports on one of these jobs.",) if reportable else (),
    )


def tasks_document(reference: str, lines: Iterable[JobLine]) -> Document:
    """Lay out the tasks of an array, or the components of a heterogeneous job."""
    found = list(lines)
    made = _table(found, _TASKS_MOST, f"`teho report {reference}_TASK` reports on one task")
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


def _tables(lines: Sequence[JobLine], most: int, *, is_narrow: bool) -> Iterator[Table]:
    if lines:
        yield _table(lines, most, "`--last {}` shows all", is_narrow=is_narrow)


def _table(lines: Sequence[JobLine], most: int, hint: str, *, is_narrow: bool = False) -> Table:
    """Return a table of the first lines.

    Args:
        lines: all lines.
        most: number of rows.
        hint: how to see the others; `{}` is the number of all lines.
        is_narrow: whether it has percentages instead of amounts.
    """
    shown = lines[:most]
    several_users = len({line.user for line in shown}) > 1
    made = table(
        "jobs", "Jobs", shown,
        column("job", "Job", lambda line: plain(line.id)),
        column(
            "name", "Name",
            lambda line: _cut(line.name, _NARROW_NAME_MOST if is_narrow else _NAME_MOST),
        ),
        column("user", "User", lambda line: plain(line.user) or None) if several_users else None,
        column("began", "Began", _began, aside=True),
        column("time", "Time", _bare_time if is_narrow else _time),
        column("cores", "Cores", _cores_share if is_narrow else _cores),
        column("memory", "Memory", _memory_share if is_narrow else _memory),
        column("gpus", "GPUs", _gpus),
        column("billing", "Billing", _billing, aside=True),
        column("recording", "Recorded", lambda line: "yes" if line.recordings else None),
        column("state", "State", _state),
        only_known=True,
    )  # fmt: skip
    left = len(lines) - len(shown)
    rest = f"and {left:,} more jobs: {hint.format(len(lines))}" if left else ""
    return msgspec.structs.replace(made, rest=rest, note=_note(shown, is_narrow=is_narrow))


def _note(lines: Sequence[JobLine], *, is_narrow: bool) -> str:
    parts = ["Cores: the mean number of used cores, and the number of cores of the job."]
    if is_narrow:
        parts = ["Cores and memory: the share of the request that was used; `?` means not known."]
    if any(_is_bound(line) for line in lines):
        parts.append("Memory: ≤ means at most this value, the sum of the peaks of all tasks.")
    if any(line.gpus for line in lines):
        parts.append("GPUs: the mean use, if the site stores it (Jobstats).")
    return " ".join(parts)


def _cut(text: str, most: int) -> str | None:
    name = plain(text)
    return (name if len(name) <= most else f"{name[: most - 1].rstrip()}…") or None


def _state(line: JobLine) -> str:
    word = line.state.value.replace("_", " ")
    if line.state is JobState.UNKNOWN and line.state_as_written:
        word = plain(line.state_as_written)
    if line.look and line.state in {JobState.COMPLETED, JobState.CANCELLED}:
        return f"{word}: {plain(line.look)}"
    return plain(line.look) or word


def _began(line: JobLine) -> str | None:
    return format_moment(line.started_at) if line.started_at else None


def _time(line: JobLine) -> str | None:
    if line.elapsed_s is None or line.started_at is None:
        return None
    time = wall_time(line.elapsed_s)
    return f"{time} of {format_duration(line.time_limit_s)}" if line.time_limit_s else time


def _bare_time(line: JobLine) -> str | None:
    return None if line.elapsed_s is None or line.started_at is None else wall_time(line.elapsed_s)


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


def _billing(line: JobLine) -> str | None:
    return None if line.billing_hours is None else format_count(line.billing_hours)
