"""The JSON of squeue and sacct, in the dialects of 21.08 to 26.05.

Before data_parser v0.0.40 (23.11) a state is a word and a number is a number; later a
state is a list of words, and a number that may be missing is an object with `set`,
`infinite` and `number`. squeue before 23.02 shows all jobs, whichever it was asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from teho.model.job import Job, JobState
from teho.schedulers.slurm import values

__all__ = ["read_accounting", "read_queue"]

_MIB = 1024**2


def read_queue(text: str) -> tuple[Job, ...]:
    """Read what `squeue --json` wrote.

    Raises:
        ValueError: it is not squeue's JSON.
    """
    return tuple(_queued(_Record(job)) for job in _jobs(text))


def read_accounting(text: str) -> tuple[Job, ...]:
    """Read what `sacct --json` wrote.

    Raises:
        ValueError: it is not sacct's JSON.
    """
    return tuple(_accounted(_Record(job)) for job in _jobs(text))


def _jobs(text: str) -> list[Mapping[str, Any]]:
    try:
        content = msgspec.json.decode(text.encode(errors="replace"))
    except msgspec.DecodeError as error:
        raise ValueError(f"not JSON: {error}") from None
    jobs = content.get("jobs") if isinstance(content, dict) else None
    if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
        raise ValueError("JSON without a list of jobs")
    return jobs


class _Record:
    """One object, whose values are asked for by their path."""

    def __init__(self, content: Any) -> None:
        self._content = content

    def value(self, path: str) -> Any:
        """Return what is at a path such as `time/elapsed`; None if nothing does."""
        found = self._content
        for key in path.split("/"):
            found = found.get(key) if isinstance(found, Mapping) else None
        return found

    def text(self, path: str) -> str:
        """Return a text; empty if there is none."""
        found = self.value(path)
        return values.word(found) if isinstance(found, str) else ""

    def number(self, path: str) -> int | None:
        """Return a whole number in either dialect; None if unset or without limit."""
        found = self.value(path)
        if isinstance(found, Mapping):
            found = found.get("number") if found.get("set") and not found.get("infinite") else None
        if isinstance(found, bool) or not isinstance(found, int) or found < 0:
            return None
        return values.count(str(found))

    def items(self, path: str) -> list[_Record]:
        """Return the objects of a list."""
        found = self.value(path)
        return [_Record(item) for item in found] if isinstance(found, list) else []

    def state(self, path: str) -> str:
        """Return the words of a state, joined by commas."""
        found = self.value(path)
        words = found if isinstance(found, list) else [found]
        return ",".join(word for word in words if isinstance(word, str))


def _queued(job: _Record) -> Job:
    written, reason = job.state("job_state"), job.text("state_reason")
    state = values.state(written, reason)
    waits = state in {JobState.PENDING, JobState.HELD}
    identity, number, task = _identity(
        job, "array_job_id", "array_task_id", "array_task_string", "het_job_id", "het_job_offset"
    )
    minutes, start = job.number("time_limit"), _moment(job, "start_time")
    given = values.tres(job.text("tres_alloc_str") or job.text("tres_req_str"))
    exit_code, signal = _ending(job, state)
    return Job(
        id=identity,
        number=number,
        task=task,
        name=job.text("name"),
        state=state,
        state_as_written=written,
        reason=reason,
        partition=job.text("partition"),
        account=job.text("account"),
        node_list=job.text("nodes"),
        **values.resources(given),
        submitted_at=_moment(job, "submit_time"),
        started_at=None if waits else start,
        ended_at=_moment(job, "end_time") if state.ended else None,
        expected_start_at=start if waits else None,
        time_limit_s=None if minutes is None else minutes * 60.0,
        exit_code=exit_code,
        signal=signal,
        comment=job.text("comment"),
        script=job.text("command"),
    )


def _accounted(job: _Record) -> Job:
    written, reason = job.state("state/current"), job.text("state/reason")
    state = values.state(written, reason)
    # A run after which the job was queued again has an end, although the job goes on.
    end = _moment(job, "time/end")
    waits = state in {JobState.PENDING, JobState.HELD} and end is None
    identity, number, task = _identity(
        job, "array/job_id", "array/task_id", "array/task", "het/job_id", "het/job_offset"
    )
    minutes, elapsed = job.number("time/limit"), job.number("time/elapsed")
    exit_code, signal = _ending(job, state)
    return Job(
        id=identity,
        number=number,
        task=task,
        name=job.text("name"),
        state=state,
        state_as_written=written,
        reason=reason if waits else "",
        partition=job.text("partition"),
        account=job.text("account"),
        node_list=job.text("nodes"),
        **values.resources(_tres(job)),
        submitted_at=_moment(job, "time/submission"),
        started_at=None if waits else _moment(job, "time/start"),
        ended_at=end,
        elapsed_s=None if waits or elapsed is None else float(elapsed),
        time_limit_s=None if minutes is None else minutes * 60.0,
        exit_code=exit_code,
        signal=signal,
        memory_peak_bytes=_memory_peak(job.items("steps")),
        cpu_s=_cpu_seconds(job) if end is not None else None,
        energy_j=_energy(job.items("steps")),
        comment=job.text("comment/job"),
    )


def _identity(
    job: _Record, array: str, task: str, waiting: str, het: str, offset: str
) -> tuple[str, str, str | None]:
    """Return id, number and task, written as squeue and sacct write them in text."""
    own = job.number("job_id")
    if own is None:
        raise ValueError("JSON with a job that has no job_id")
    index, indices = job.number(task), job.text(waiting)
    if (number := job.number(array)) and (index is not None or indices):
        if index is not None:
            return f"{number}_{index}", str(number), str(index)
        return f"{number}_[{indices}]", str(number), indices
    if number := job.number(het):
        return f"{number}+{job.number(offset) or 0}", str(number), None
    return str(own), str(own), None


def _moment(job: _Record, path: str) -> Any:
    return values.moment(str(job.number(path) or ""))


def _ending(job: _Record, state: JobState) -> tuple[int | None, int | None]:
    """Return exit code and signal; an int is wait(2)'s status, as squeue had it until 22.05.

    Of 23.02 the code of a failed job reads 0, which `values.ending` does not believe.
    """
    status = job.value("exit_code")
    if isinstance(status, int) and not isinstance(status, bool):
        try:
            code = os.waitstatus_to_exitcode(status)
        except (ValueError, OverflowError):
            return None, None
        return values.ending(state, max(code, 0), max(-code, 0))
    signal = job.number("exit_code/signal/id") or job.number("exit_code/signal/signal_id")
    return values.ending(state, job.number("exit_code/return_code"), signal)


def _tres(job: _Record) -> dict[str, str]:
    """Return trackable resources as the text form names them; memory counts in MiB."""
    for path in ("tres/allocated", "tres/requested"):
        found = {}
        for item in job.items(path):
            kind, name = item.text("type"), item.text("name")
            amount = item.number("count")
            if kind and amount is not None:
                label = f"{kind}/{name}" if name else kind
                found[label] = f"{amount * _MIB}" if kind == "mem" else f"{amount}"
        if found:
            return values.tres(",".join(f"{name}={value}" for name, value in found.items()))
    return {}


def _memory_peak(steps: Iterable[_Record]) -> int | None:
    """Return the largest resident set of a task in bytes (the key says `requested`; it is used)."""
    found = [
        item.number("count") or 0
        for step in steps
        for item in step.items("tres/requested/max")
        if item.text("type") == "mem"
    ]
    return max(found, default=0) or None


def _energy(steps: Iterable[_Record]) -> float | None:
    found = [step.number("statistics/energy/consumed") or 0 for step in steps]
    return float(sum(found)) or None


def _cpu_seconds(job: _Record) -> float | None:
    seconds = job.number("time/total/seconds")
    if seconds is None:
        return None
    return seconds + (job.number("time/total/microseconds") or 0) / 1e6
