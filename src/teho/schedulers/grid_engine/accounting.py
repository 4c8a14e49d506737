"""Everything that qacct knows of jobs, read while qacct prints it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from teho.model.accounted import AccountedJob
from teho.model.job import Job
from teho.patterns import lazy_pattern
from teho.schedulers.backend import History, Query, Selection
from teho.schedulers.command import Completed, accepted
from teho.schedulers.grid_engine import text as texts

__all__ = ["NOT_THERE", "history_of_job", "history_since", "read_jobs"]

NOT_THERE = ("not found", "do not exist", "does not exist")
"""Parts of messages for an unknown job. The exit code is then 1."""
_JOB = lazy_pattern(r"(\d+)(?:[._](\d+))?", re.ASCII)
# A local time is ambiguous for one hour when the clocks are set back.
_CLOCK_CHANGE = timedelta(hours=1)
_NO_WORD = frozenset({"NONE", "UNKNOWN"})


def history_of_job(job_id: str, user: str) -> History | None:
    """Return the question about all records of one job, or of one task of an array.

    qacct has no job that waits or runs, so the queue is asked for the jobs of the user.
    """
    match = _JOB.fullmatch(job_id)
    if match is None:
        return None
    number, task = match.groups()
    return _history("-j", number, *(["-t", task] if task else []), queue=_queue_of(user))


def history_since(selection: Selection) -> History:
    """Return the question about all jobs of a time."""
    begin = (selection.since - _CLOCK_CHANGE).astimezone()
    return _history(
        *(["-o", selection.user] if selection.user else []),
        *(["-P", selection.account] if selection.account else []),
        *("-b", f"{begin:%Y%m%d%H%M}", "-j", "*"),
        queue=_queue_of(selection.user or "*"),
    )


def _queue_of(user: str) -> Query:
    return Query(("qstat", "-xml", "-r", "-u", user), (), _read_queued)


def _history(*options: str, queue: Query | None = None) -> History:
    return History(argv=("qacct", *options), read=read_jobs, not_there=NOT_THERE, queue=queue)


def _read_queued(answer: Completed) -> tuple[Job, ...]:
    found = texts.read_owned_queue(accepted(answer).stdout)
    return tuple(
        AccountedJob(
            **{name: getattr(job, name) for name in Job.__struct_fields__},
            scheduler="grid_engine",
            source="qstat",
            user=owner,
        )
        for job, owner in found
    )


def read_jobs(lines: Iterable[str]) -> Iterator[AccountedJob]:
    """Yield each run of a job from what qacct printed.

    Args:
        lines: with or without their line breaks.

    Raises:
        ValueError: a record has no job number.
    """
    jobs: dict[str, list[_Record]] = {}
    for record in texts.records_in(lines):
        found = _Record(record, texts.job_facts(record))
        jobs.setdefault(found.facts["id"], []).append(found)
    for records in jobs.values():
        for run in _runs(records):
            yield _job(run)


class _Record(NamedTuple):
    """A record of qacct, and the fields of a job that it gives."""

    record: Mapping[str, str]
    facts: Mapping[str, Any]


def _runs(records: Sequence[_Record]) -> Iterator[list[_Record]]:
    """Yield the records of each run of a job, in the order of their ends.

    A parallel job may have a record for each of its hosts. These records overlap in time.
    """
    run: list[_Record] = []
    for one in records:
        began, ends = one.facts["started_at"], [each.facts["ended_at"] for each in run]
        is_parallel = one.record.get("granted_pe", "NONE") != "NONE"
        is_same = is_parallel and began and None not in ends and ends and began < max(ends)
        if run and not is_same:
            yield run
            run = []
        run.append(one)
    if run:
        yield run


def _job(run: Sequence[_Record]) -> AccountedJob:
    record, facts = run[-1].record, dict(run[-1].facts)
    hosts = tuple(dict.fromkeys(one.record.get("hostname", "") for one in run))
    if len(run) > 1:
        facts |= _of_several([one.facts for one in run], hosts)
    if facts["cpu_s"] == 0 and facts["elapsed_s"]:
        facts["cpu_s"] = None  # each process uses some time, so it was not measured
    owner = record.get("owner", "")
    transferred = [texts.size_bytes(one.record.get("io", "")) for one in run]
    return AccountedJob(
        **facts,
        scheduler="grid_engine",
        source="qacct",
        user=owner if owner not in _NO_WORD else "",
        read_written_bytes=None if None in transferred else sum(filter(None, transferred)),
        hosts=hosts if len(hosts) > 1 else (),
    )


def _of_several(each: Sequence[Mapping[str, Any]], hosts: Sequence[str]) -> dict[str, Any]:
    """Return what differs if a run has a record for each host: sums, and the largest process."""
    cpu_s = [one["cpu_s"] for one in each]
    starts = [one["started_at"] for one in each if one["started_at"]]
    return {
        "cpu_s": None if None in cpu_s else sum(cpu_s),
        "started_at": min(starts, default=None),
        "elapsed_s": max((one["elapsed_s"] for one in each if one["elapsed_s"]), default=None),
        "memory_peak_bytes": max(
            (one["memory_peak_bytes"] for one in each if one["memory_peak_bytes"]), default=None
        ),
        "nodes": len(hosts),
        "node_list": ",".join(hosts),
    }
