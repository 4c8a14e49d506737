"""The columns of squeue and sacct.

Columns are parted by two control characters that stand together in no text of any job,
and the free texts (name, comment, command) come last: whatever they hold, they cannot
shift the rest. squeue's rows begin with a mark of their own, because a name may hold a
line break; sacct knows no such mark, so that its answer is cut into rows of equal length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from teho.model.job import Job, JobState
from teho.schedulers.slurm import values

__all__ = ["ACCOUNTING_OPTIONS", "ENVIRONMENT", "QUEUE_FORMAT", "read_accounting", "read_queue"]

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
# sacct(1), --format; all are there since 20.11.
_ACCOUNTING = (
    "JobID",
    "State",
    "ExitCode",
    "Partition",
    "Account",
    "NodeList",
    "AllocTRES",
    "ReqTRES",
    "Submit",
    "Start",
    "End",
    "ElapsedRaw",
    "TimelimitRaw",
    "TotalCPU",
    "MaxRSS",
    "ConsumedEnergyRaw",
    "Reason",
    "JobName",
    "Comment",
)
# Only before an id: a name may hold the separator too.
_ROW_START = re.compile(_ROW + r"(?=[\d_+,%:\[\]-]+" + _COLUMN + ")")
QUEUE_FORMAT = _ROW + _COLUMN.join(_QUEUE.values())
ACCOUNTING_OPTIONS = (
    "--noheader",
    "--parsable",
    f"--delimiter={_COLUMN}",
    f"--format={','.join(_ACCOUNTING)}",
)
ENVIRONMENT = {
    # Seconds since 1970: a local time without its offset is ambiguous once a year. For the
    # columns alone: sacct 22.05 with --json trips over its own times then.
    "SLURM_TIME_FORMAT": "%s",
    # Lists of array tasks in full.
    "SLURM_BITSTR_LEN": "0",
}
_WAITS = frozenset({JobState.PENDING, JobState.HELD})


def read_queue(text: str) -> tuple[Job, ...]:
    """Read what `squeue --format=QUEUE_FORMAT` wrote.

    Raises:
        ValueError: a row has not the columns that were asked for.
    """
    # Before the first row there may be a line that names the cluster.
    return tuple(_queued(row) for row in _ROW_START.split(text)[1:])


def _queued(text: str) -> Job:
    parts = text.removesuffix("\n").split(_COLUMN)
    if len(parts) != len(_QUEUE):
        raise ValueError(f"squeue: {len(parts)} columns instead of {len(_QUEUE)}: {text[:100]!r}")
    row = dict(zip(_QUEUE, parts, strict=True))
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
    """Return the GPUs of `gres/gpu:v100:2` on each node; None if the job names none so."""
    found = [
        values.count(item.rpartition(":")[2]) or 1
        for item in gres.split(",")
        if item.removeprefix("gres:").removeprefix("gres/").split(":")[0] == "gpu"
    ]
    return sum(found) * nodes if found and nodes else None


def read_accounting(text: str) -> tuple[Job, ...]:
    """Read what `sacct ACCOUNTING_OPTIONS` wrote, each run of a job with its steps.

    Raises:
        ValueError: the answer does not fall into the columns that were asked for.
    """
    parts = text.split(_COLUMN)
    width = len(_ACCOUNTING)
    if len(parts) % width != 1 or parts[-1].strip():
        raise ValueError(f"sacct: {len(parts)} values are no rows of {width}: {text[-100:]!r}")
    rows = [
        dict(zip(_ACCOUNTING, parts[start : start + width], strict=True))
        for start in range(0, len(parts) - 1, width)
    ]
    for row in rows:
        # Before the first row there may be a site's own greeting.
        row["JobID"] = row["JobID"].rpartition("\n")[2]
    starts = [at for at, row in enumerate(rows) if at == 0 or "." not in row["JobID"]]
    return tuple(_accounted(rows[at:end]) for at, end in pairwise([*starts, len(rows)]))


def _accounted(rows: list[dict[str, str]]) -> Job:
    row, steps = rows[0], rows[1:]
    job = row["JobID"].partition(".")[0]
    number, task = _identity(job)
    state = values.state(row["State"], row["Reason"])
    # A run after which the job was queued again has an end, although the job goes on.
    end = values.moment(row["End"])
    waits = state in _WAITS and end is None
    given = values.tres(row["AllocTRES"]) or values.tres(row["ReqTRES"])
    code, _, signal = row["ExitCode"].partition(":")
    exit_code, signal_number = values.ending(state, values.count(code), values.count(signal))
    minutes, elapsed = values.count(row["TimelimitRaw"]), values.count(row["ElapsedRaw"])
    return Job(
        id=job,
        number=number,
        task=task,
        name=row["JobName"],
        state=state,
        state_as_written=row["State"],
        # Of a job that has started it is still the reason why it waited.
        reason=values.word(row["Reason"]) if waits else "",
        partition=values.word(row["Partition"]),
        account=values.word(row["Account"]),
        node_list=values.word(row["NodeList"]),
        **values.resources(given),
        submitted_at=values.moment(row["Submit"]),
        started_at=None if waits else values.moment(row["Start"]),
        ended_at=end,
        elapsed_s=None if waits or elapsed is None else float(elapsed),
        time_limit_s=None if minutes is None else minutes * 60.0,
        exit_code=exit_code,
        signal=signal_number,
        memory_peak_bytes=_largest(values.size(step["MaxRSS"]) for step in steps),
        cpu_s=values.cpu_seconds(row["TotalCPU"]) if end is not None else None,
        energy_j=values.energy(row["ConsumedEnergyRaw"]),
        comment=values.word(row["Comment"]),
    )


def _identity(written: str) -> tuple[str, str | None]:
    found = values.job_id(written)
    if found is None:
        raise ValueError(f"{written[:60]!r} is not a job id of Slurm")
    return found


def _largest(amounts: Iterable[int | None]) -> int | None:
    """Return the largest; 0 is a step that ended before it was looked at."""
    return max((amount for amount in amounts if amount), default=None)
