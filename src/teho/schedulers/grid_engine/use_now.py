"""Ask qstat what a running job has used until now.

qacct has these figures only after the end of a job. Source: qstat(1), `-j`; sge_status(5) has no
more. The address space (vmem, maxvmem) is not the memory that a job uses, so it is not read.
"""

from __future__ import annotations

import re

import msgspec

from teho.model.accounted import AccountedJob
from teho.model.job import JobState
from teho.patterns import lazy_pattern
from teho.schedulers.backend import UseNow
from teho.schedulers.grid_engine.text import size_bytes

__all__ = ["use_now"]

_COMMAND = "qstat"
_TIMEOUT_S = 10.0
_USAGE = lazy_pattern(r"^usage\s+(\d+):\s+(.+)$", re.MULTILINE)
_UNITS_S = (1, 60, 3600, 86400)
"""Of the parts of a time, the last one first."""


def use_now(job: AccountedJob) -> UseNow | None:
    """Return the question about a job; None if it does not run."""
    if job.state is not JobState.RUNNING or job.source != _COMMAND:
        return None
    return UseNow(argv=(_COMMAND, "-j", job.number), read=_read, timeout_s=_TIMEOUT_S)


def _read(text: str, job: AccountedJob) -> AccountedJob | None:
    """Return the job with what qstat printed; None if it printed no figures."""
    # A job that is not an array has the number 1.
    used = next((rest for task, rest in _USAGE.findall(text) if task == (job.task or "1")), "")
    facts = {
        name.strip(): value.strip()
        for name, sign, value in (part.partition("=") for part in used.split(","))
        if sign
    }
    cpu_s = _seconds(facts.get("cpu", ""))
    peak = size_bytes(facts["maxrss"]) if "maxrss" in facts else None
    if not cpu_s and not peak:
        return None  # in the first second, qstat prints zeros
    moved = size_bytes(facts.get("io", "x").replace(" ", ""))
    return msgspec.structs.replace(
        job,
        cpu_s=cpu_s or None,
        memory_peak_bytes=peak or None,
        read_written_bytes=moved or None,
        used_until_now=_COMMAND,
    )


def _seconds(text: str) -> float | None:
    """Return seconds of `00:10:05` or `1:02:03:04`; None: not a time."""
    parts = text.split(":")[::-1]
    if len(parts) > len(_UNITS_S) or not all(part.isdecimal() for part in parts):
        return None
    return float(sum(int(part) * unit for part, unit in zip(parts, _UNITS_S, strict=False)))
