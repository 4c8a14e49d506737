"""Read the columns of squeue and sacct, which are the same in Slurm 20.11 to 26.

Two control characters separate the columns. The free texts (name, comment, command) come
last, so they cannot shift the other columns. A name may contain a line break. In squeue, a
control character therefore marks the start of a row. sacct cannot write one, so a row of
sacct starts at a job id that is followed by a state and an exit code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from teho.model.job import Job, JobState
from teho.patterns import lazy_pattern
from teho.schedulers.slurm import values
from teho.schedulers.slurm.resources import gpus_in

__all__ = [
    "ACCOUNTING_OPTIONS",
    "ENVIRONMENT",
    "FACTS",
    "QUEUE_FORMAT",
    "Row",
    "job_facts",
    "options_for",
    "read_accounting",
    "read_queue",
    "runs_in",
]

Row = Mapping[str, str]
"""A row of sacct: its cells by the names of the columns."""

_COLUMN, _ROW = "\x1f\x1e", "\x1d"
# squeue(1), --format.
_QUEUE = {
    "id": "%i",
    "state": "%T",
    "reason": "%r",
    "partition": "%P",
    "account": "%a",
    "nodes": "%D",
    "cores": "%C",
    "gres": "%b",
    "node_list": "%N",
    "submitted": "%V",
    "started": "%S",
    "ended": "%e",
    "elapsed": "%M",
    "limit": "%l",
    "name": "%j",
    "comment": "%k",
    "script": "%o",
}
# sacct(1), --format; 20.11 has all of them.
FACTS = (
    "JobID,State,ExitCode,Partition,Account,NodeList,AllocTRES,ReqTRES,Submit,Start,End,ElapsedRaw,"
    "TimelimitRaw,TotalCPU,MaxRSS,ConsumedEnergyRaw,Reason"
)
"""Columns of sacct that `job_facts` reads, besides the free texts JobName and Comment."""
_ACCOUNTING = f"{FACTS},JobName,Comment"
_ID = r"[\d_+,%:\[\]-]+"
# A name may contain the mark too, so a row only starts before an id.
_QUEUE_ROW = lazy_pattern(rf"{_ROW}(?={_ID}{_COLUMN})")
# A step of a node that failed has no exit code.
_STATE = rf"{_COLUMN}[^\x1f]+{_COLUMN}"
_ACCOUNTING_ROW = lazy_pattern(rf"{_ID}(?:{_STATE}\d+:\d+|\.\w+{_STATE}(?:\d+:\d+)?){_COLUMN}")
QUEUE_FORMAT = _ROW + _COLUMN.join(_QUEUE.values())


def options_for(columns: str) -> tuple[str, ...]:
    """Return sacct's options for these columns, in the form that `runs_in` reads."""
    return ("--noheader", "--parsable", f"--delimiter={_COLUMN}", f"--format={columns}")


ACCOUNTING_OPTIONS = options_for(_ACCOUNTING)
ENVIRONMENT = {
    # Seconds since 1970: a local time without an offset is ambiguous for one hour each year.
    "SLURM_TIME_FORMAT": "%s",
    # Do not shorten lists of array tasks.
    "SLURM_BITSTR_LEN": "0",
}
_WAITS = frozenset({JobState.PENDING, JobState.HELD})


def read_queue(text: str) -> tuple[Job, ...]:
    """Read what `squeue --format=QUEUE_FORMAT` printed.

    Raises:
        ValueError: a row does not have all columns.
    """
    # Before the first row there may be a line that names the cluster.
    rows = _QUEUE_ROW.split(text)[1:]
    return tuple(_queued(_row("squeue", row.removesuffix("\n"), [*_QUEUE], "name")) for row in rows)


def _row(command: str, text: str, columns: Sequence[str], name: str) -> dict[str, str]:
    """Return a row's cells by column. Surplus separators belong to the job's name."""
    cells = text.split(_COLUMN)
    surplus = len(cells) - len(columns)
    if surplus < 0:
        raise ValueError(
            f"a row of {command} has {len(cells)} columns instead of {len(columns)}: {text[:100]!r}"
        )
    if not surplus:
        return dict(zip(columns, cells, strict=True))
    at = columns.index(name)
    end = at + surplus + 1
    return dict(zip(columns, [*cells[:at], _COLUMN.join(cells[at:end]), *cells[end:]], strict=True))


def _queued(row: dict[str, str]) -> Job:
    number, task = _identity(row["id"])
    state = values.state(row["state"], row["reason"])
    waits = state in _WAITS
    start, nodes = values.moment(row["started"]), values.count(row["nodes"])
    return Job(
        id=row["id"],
        number=number,
        task=task,
        name=row["name"],
        state=state,
        state_as_written=row["state"],
        reason=values.word(row["reason"]),
        partition=values.word(row["partition"]),
        account=values.word(row["account"]),
        node_list=values.word(row["node_list"]),
        nodes=nodes,
        cores=values.count(row["cores"]),
        gpus=_gpus_per_node(row["gres"], nodes),
        submitted_at=values.moment(row["submitted"]),
        started_at=None if waits else start,
        ended_at=values.moment(row["ended"]) if state.ended else None,
        expected_start_at=start if waits else None,
        elapsed_s=None if waits else values.limit_seconds(row["elapsed"]),
        time_limit_s=values.limit_seconds(row["limit"]),
        comment=values.word(row["comment"]),
        script=values.word(row["script"]),
    )


def _gpus_per_node(gres: str, nodes: int | None) -> int | None:
    """Return the job's GPUs from `gres/gpu:v100:2` for each node; None: it names no GPU there."""
    found = gpus_in(re.sub("gres[:/]", "", gres))
    return sum(count for _, count in found) * nodes if found and nodes else None


def read_accounting(text: str) -> tuple[Job, ...]:
    """Read what `sacct ACCOUNTING_OPTIONS` printed: each run of a job, with its steps.

    Raises:
        ValueError: the answer is not rows, or a row does not have all columns.
    """
    lines = (f"{line}\n" for line in text.split("\n"))
    return tuple(Job(**job_facts(row, steps)) for row, *steps in runs_in(lines, _ACCOUNTING))


def runs_in(lines: Iterable[str], columns: str) -> Iterator[list[Row]]:
    """Yield the rows of each run of a job: first the job's own row, then the rows of its steps.

    Args:
        lines: what sacct printed with `options_for(columns)`. A name can have line breaks.
        columns: the names of the columns, which begin with JobID, State and ExitCode.

    Raises:
        ValueError: the answer is not rows, or a row does not have all columns.
    """
    names = columns.split(",")
    run: list[Row] = []
    for text in _texts_of_rows(lines, len(names)):
        row = _row("sacct", text, [*names, ""], "JobName")
        if run and "." in row["JobID"]:
            run.append(row)
            continue
        if run:
            yield run
        run = [row]
    if run:
        yield run


def _texts_of_rows(lines: Iterable[str], columns: int) -> Iterator[str]:
    """Yield the text of each row; before the first row there may be a greeting of the site."""
    row = ""
    for line in lines:
        if _ACCOUNTING_ROW.match(line):
            if row:
                yield row.rstrip("\n")
            row = line
        elif row:
            row += line
        elif _COLUMN in line:
            raise ValueError(
                f"the output of sacct is not a table of {columns} columns: {line[-100:]!r}"
            )
    if row:
        yield row.rstrip("\n")


def job_facts(row: Row, steps: Sequence[Row]) -> dict[str, Any]:
    """Return the fields of a `Job` from the rows of one run; the columns are at least `FACTS`."""
    job = row["JobID"].partition(".")[0]
    number, task = _identity(job)
    state = values.state(row["State"], row["Reason"])
    # If a job was queued again, its earlier run has an end although the job continues.
    end = values.moment(row["End"])
    waits = state in _WAITS and end is None
    tres = values.tres(row["AllocTRES"]) or values.tres(row["ReqTRES"])
    exit_code, signal_number = values.ending(state, *values.exit_status(row["ExitCode"]))
    peaks = [values.size(step["MaxRSS"]) for step in steps]
    minutes, elapsed = values.count(row["TimelimitRaw"]), values.count(row["ElapsedRaw"])
    return {
        "id": job,
        "number": number,
        "task": task,
        "name": row["JobName"],
        "state": state,
        "state_as_written": row["State"],
        # After the start, this is still the reason why the job waited.
        "reason": values.word(row["Reason"]) if waits else "",
        "partition": values.word(row["Partition"]),
        "account": values.word(row["Account"]),
        "node_list": values.word(row["NodeList"]),
        "nodes": values.count(tres.get("node", "")),
        "cores": values.count(tres.get("cpu", "")),
        # A list without GPUs means 0 GPUs. No list at all means: not known.
        "gpus": values.count(tres.get("gres/gpu", "0")) if tres else None,
        "memory_bytes": values.size(tres.get("mem", "")),
        "billing": values.count(tres.get("billing", "")),
        "submitted_at": values.moment(row["Submit"]),
        "started_at": None if waits else values.moment(row["Start"]),
        "ended_at": end,
        "elapsed_s": None if waits or elapsed is None else float(elapsed),
        "time_limit_s": None if minutes is None else minutes * 60.0,
        "exit_code": exit_code,
        "signal": signal_number,
        # 0 means that a step ended before Slurm measured it.
        "memory_peak_bytes": max(filter(None, peaks), default=None),
        "cpu_s": values.cpu_seconds(row["TotalCPU"]) if end is not None else None,
        "energy_j": values.energy(row["ConsumedEnergyRaw"]),
        "comment": values.word(row["Comment"]),
    }


def _identity(written: str) -> tuple[str, str | None]:
    found = values.job_id(written)
    if found is None:
        raise ValueError(f"{written[:60]!r} is not a job id of Slurm")
    return found
