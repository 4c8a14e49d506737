"""Read the output of qstat and qacct of Grid Engine 8.1.

Times are local, without an offset. sge_status(5) explains qacct's `failed`, and accounting(5) the
other fields.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any

from teho.errors import UnitError
from teho.model.job import Job, JobState
from teho.patterns import lazy_pattern
from teho.schedulers.hostlist import is_number
from teho.units import parse_bytes, parse_duration

__all__ = [
    "job_facts",
    "read_accounting",
    "read_contexts",
    "read_owned_queue",
    "read_queue",
    "records_in",
    "size_bytes",
]

_RULE = lazy_pattern(r"^=+\n", re.MULTILINE)
_KEY = lazy_pattern(r"([A-Za-z][\w() -]*?):(?:\s+|$)(.*)")
# Characters that a job's name may contain, but XML may not.
_NOT_XML = lazy_pattern(r"[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_GPU = lazy_pattern(r"(?:coproc_\w+|\w*gpu\w*|cuda\w*)", re.IGNORECASE)
_KIB = 1024
# accounting(5), failed: how a job ended that did not end normally.
_OVER_TIME, _KILLED = 37, 100
_REQUEUED = frozenset({24, 25})
"""Migrating and rescheduled: the job waits to run again."""


def read_queue(text: str) -> tuple[Job, ...]:
    """Read the output of `qstat -xml -r`.

    Raises:
        ValueError: it is not qstat's XML.
    """
    return tuple(job for job, _ in read_owned_queue(text))


def read_owned_queue(text: str) -> tuple[tuple[Job, str], ...]:
    """Read the output of `qstat -xml -r`: the jobs, each with its owner.

    Raises:
        ValueError: it is not qstat's XML.
    """
    try:
        # The text comes from the scheduler and has no document type.
        root = ET.fromstring(_NOT_XML.sub("?", text))  # noqa: S314
    except ET.ParseError as error:
        raise ValueError(f"not XML: {error}") from None
    now = datetime.now(timezone.utc)
    return tuple(
        (_queued(element, now), (element.findtext("JB_owner") or "").strip())
        for element in root.iter("job_list")
    )


def _queued(element: ET.Element, now: datetime) -> Job:
    def text(name: str) -> str:
        return (element.findtext(name) or "").strip()

    number, task = text("JB_job_number"), text("tasks") or None
    if not number.isdigit():
        raise ValueError(f"{repr(number)[:60]} is not a job number")
    requested = {
        request.get("name", ""): (request.text or "").strip()
        for request in element.iter("hard_request")
    }
    predecessors = ", ".join(
        (found.text or "").strip() for found in element.iter("predecessor_jobs")
    )
    state = _state(text("state"), waits_for_others=bool(predecessors))
    queue, _, host = text("queue_name").partition("@")
    slots = _count(text("slots"))
    start = _iso(text("JAT_start_time"))
    return Job(
        id=f"{number}.{task}" if task else number,
        number=number,
        task=task,
        name=text("full_job_name") or text("JB_name"),
        state=state,
        state_as_written=text("state"),
        reason=_reason(text("state"), predecessors),
        partition=queue,
        node_list=host,
        cores=slots,
        gpus=_gpus(requested),
        memory_bytes=_memory(requested, slots),
        submitted_at=_iso(text("JB_submission_time")),
        started_at=start,
        # The start is from another machine's clock, which may be ahead.
        elapsed_s=None if start is None else max(0.0, (now - start).total_seconds()),
        time_limit_s=_seconds(requested.get("h_rt", "")),
    )


def _state(letters: str, *, waits_for_others: bool) -> JobState:
    """Return the state for qstat(1)'s letters: `qw`, `hqw`, `Eqw`, `r`, `dr`, `Rr`, `S`."""
    if not letters or set(letters) - set("dEhrRsSTtwqPN"):
        return JobState.UNKNOWN
    if "d" in letters:
        return JobState.COMPLETING
    if "E" in letters:
        return JobState.HELD
    if set(letters) & set("sSTPN"):
        return JobState.SUSPENDED
    if "h" in letters and set(letters) & set("qw"):
        return JobState.PENDING if waits_for_others else JobState.HELD
    return JobState.RUNNING if set(letters) & set("rt") else JobState.PENDING


def _reason(letters: str, predecessors: str) -> str:
    if "E" in letters:
        return (
            "the job is in an error state: `qstat -j` prints the reason, and `qmod -cj` clears the "
            "error state"
        )
    return f"waits for job {predecessors}" if predecessors else ""


def read_contexts(text: str) -> tuple[Job, ...]:
    """Read the output of `qstat -j`: the jobs with their context, which has Teho's mark."""
    found = []
    for block in _RULE.split(text)[1:]:
        facts: dict[str, str] = {}
        for line in block.splitlines():
            if match := _KEY.match(line):
                facts.setdefault(match.group(1).strip(), match.group(2).strip())
        number = facts.get("job_number", "")
        if not number.isdigit():
            raise ValueError(
                f"a job in the output of qstat -j has no job_number: {repr(block)[:100]}"
            )
        script = facts.get("script_file", "")
        found.append(
            Job(
                id=number,
                number=number,
                name=facts.get("job_name", ""),
                state=JobState.UNKNOWN,
                submitted_at=_local(facts.get("submission_time", "")),
                comment=facts.get("context", ""),
                script=script if Path(script).is_absolute() else "",
            )
        )
    return tuple(found)


def read_accounting(text: str) -> tuple[Job, ...]:
    """Read the output of `qacct -j`: all records, in the order of their ends."""
    return tuple(Job(**job_facts(record)) for record in records_in(text.splitlines()))


def records_in(lines: Iterable[str]) -> Iterator[Mapping[str, str]]:
    """Yield the records that `qacct -j` printed, each with its values by key.

    Args:
        lines: with or without their line breaks.

    Raises:
        ValueError: a record has no job number.
    """
    record: dict[str, str] | None = None
    for line in lines:
        if line.startswith("=") and not line.strip().strip("="):
            if record is not None:
                yield _checked(record)
            record = {}
        elif record is not None and line.strip():
            key, _, value = line.partition(" ")
            record[key.rstrip()] = value.strip()
    if record is not None:
        yield _checked(record)


def _checked(record: Mapping[str, str]) -> Mapping[str, str]:
    if not record.get("jobnumber", "").isdigit():
        raise ValueError(f"qacct without a jobnumber: {str(dict(record))[:100]}")
    return record


def job_facts(record: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a `Job` from a record of qacct."""
    number, task = record["jobnumber"], record.get("taskid", "undefined")
    requested = _category(record.get("category", ""))
    slots = _count(record.get("slots", ""))
    elapsed = _seconds(record.get("ru_wallclock", ""))
    limit = _seconds(requested.get("h_rt", ""))
    state, exit_code, signal = _ending(record, elapsed, limit)
    failed = record.get("failed", "")
    return {
        "id": f"{number}.{task}" if task.isdigit() else number,
        "number": number,
        "task": task if task.isdigit() else None,
        "name": record.get("jobname", ""),
        "state": state,
        "state_as_written": f"failed {failed}, exit_status {record.get('exit_status', '')}",
        "reason": "" if _failed(record) == 0 else failed,
        "partition": _word(record.get("qname", "")),
        "account": _word(record.get("project", "")) or _word(record.get("account", "")),
        "node_list": _word(record.get("hostname", "")),
        "nodes": 1 if record.get("granted_pe") == "NONE" else None,
        "cores": slots,
        "gpus": _gpus(requested) if "category" in record else None,
        "memory_bytes": _memory(requested, slots),
        "submitted_at": _local(record.get("qsub_time", "")),
        "started_at": _local(record.get("start_time", "")),
        "ended_at": _local(record.get("end_time", "")),
        "elapsed_s": elapsed,
        "time_limit_s": limit,
        "exit_code": exit_code,
        "signal": signal,
        "memory_peak_bytes": _resident_bytes(record.get("ru_maxrss", "")),
        "cpu_s": _seconds(record.get("cpu", "")),
    }


def _failed(record: Mapping[str, str]) -> int | None:
    return _count((record.get("failed", "").split() or [""])[0])


def _ending(
    record: Mapping[str, str], elapsed_s: float | None, limit_s: float | None
) -> tuple[JobState, int | None, int | None]:
    """Return state, exit code and signal.

    Grid Engine does not report why a job was killed: by a user, for its memory, or for its time.
    If it was killed at its time limit, the time limit is taken as the reason.
    """
    failed = _failed(record)
    status = _count((record.get("exit_status", "").split() or [""])[0])
    over = limit_s is not None and elapsed_s is not None and elapsed_s >= limit_s
    signal = status - 128 if failed == _KILLED and status is not None and status > 128 else None
    if failed == _OVER_TIME or (failed == _KILLED and over):
        return JobState.TIMED_OUT, None, signal
    if failed == 0 and status is not None:
        return (JobState.FAILED if status else JobState.COMPLETED), status, None
    if failed is None or status is None:
        return JobState.UNKNOWN, None, None
    if failed in _REQUEUED:
        return JobState.PENDING, None, None
    return JobState.FAILED, None, signal


def _category(text: str) -> dict[str, str]:
    """Return the resources of `-q gpu.q -l coproc_v100=1,h_rt=1800 -pe smp 10`."""
    words = text.split()
    lists = [after for word, after in pairwise(words) if word == "-l"]
    pairs = (item.partition("=") for item in ",".join(lists).split(","))
    return {name: value for name, _, value in pairs if name}


def _gpus(requested: Mapping[str, str]) -> int | None:
    """Return the number of requested GPUs, by the names that sites give them."""
    return sum(_count(value) or 0 for name, value in requested.items() if _GPU.fullmatch(name))


def _memory(requested: Mapping[str, str], slots: int | None) -> int | None:
    """Return h_vmem times the slots: the request is for each slot."""
    try:
        amount = parse_bytes(requested.get("h_vmem", ""))
    except (UnitError, OverflowError):
        return None
    return amount * slots if slots else None


def _resident_bytes(text: str) -> int | None:
    """Return bytes of ru_maxrss.

    8.1.9 takes the kernel's KiB for bytes, so `4.391KB` means 4.391 MiB. Older versions print the
    kernel's number unchanged.
    """
    try:
        return round(parse_bytes(text.upper().removesuffix("B") or "0") * _KIB) or None
    except (UnitError, OverflowError):
        return None


def size_bytes(text: str) -> int | None:
    """Return bytes of `34.603KB`, which qacct writes in powers of 1024; None: not an amount."""
    try:
        return round(parse_bytes(text.upper().removesuffix("B") or "0"))
    except (UnitError, OverflowError):
        return None


def _seconds(text: str) -> float | None:
    """Return seconds of `1800`, `0.007s` or `1:00:00`."""
    try:
        return parse_duration(text, bare_is_s=True)
    except (UnitError, ValueError, OverflowError):
        return None


def _count(text: str) -> int | None:
    return int(text) if is_number(text) else None


def _word(text: str) -> str:
    return "" if text in {"NONE", "UNKNOWN", "-/-"} else text


def _iso(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone(timezone.utc)
    except (ValueError, OverflowError, OSError):
        return None


def _local(text: str) -> datetime | None:
    """Return the time of `Fri Nov 20 13:46:18 2026`; None for 1970, which means no time."""
    try:
        naive = datetime.strptime(text, "%a %b %d %H:%M:%S %Y")  # noqa: DTZ007
        found = naive.astimezone(timezone.utc)
    except (ValueError, OverflowError, OSError):
        return None
    return found if found.timestamp() > 0 else None
