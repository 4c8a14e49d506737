"""Read the words and numbers that squeue and sacct print."""

from __future__ import annotations

import getpass
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from functools import lru_cache

from teho.errors import UnitError
from teho.model.job import Job, JobState, Submission
from teho.patterns import lazy_pattern
from teho.units import parse_bytes, parse_duration

__all__ = [
    "count",
    "cpu_seconds",
    "ending",
    "energy",
    "exit_status",
    "fill_pattern",
    "gpu_memory",
    "job_id",
    "limit_seconds",
    "moment",
    "size",
    "state",
    "tres",
    "word",
]

# squeue(1), JOB STATE CODES, of 20.11 to 26.05.
_STATES = {
    word: state
    for state, words in {
        JobState.PENDING: "PENDING REQUEUED REQUEUE_FED EXPEDITING",
        JobState.HELD: "REQUEUE_HOLD RESV_DEL_HOLD SPECIAL_EXIT",
        JobState.RUNNING: "CONFIGURING POWER_UP_NODE RUNNING RESIZING SIGNALING",
        JobState.SUSPENDED: "SUSPENDED STOPPED",
        JobState.COMPLETING: "COMPLETING STAGE_OUT UPDATE_DB",
        JobState.COMPLETED: "COMPLETED",
        JobState.CANCELLED: "CANCELLED REVOKED",
        JobState.FAILED: "FAILED",
        JobState.TIMED_OUT: "TIMEOUT DEADLINE",
        JobState.OUT_OF_MEMORY: "OUT_OF_MEMORY",
        JobState.NODE_FAILED: "NODE_FAIL BOOT_FAIL LAUNCH_FAILED RECONFIG_FAIL",
        JobState.PREEMPTED: "PREEMPTED",
    }.items()
    for word in words.split()
}
# Flags that matter more than the state that they are added to.
_STRONGER = (JobState.COMPLETING, JobState.HELD)
# Reasons such as JobHeldUser, JobHoldMaxRequeue and "job requeued in held state".
_HELD = lazy_pattern(r"^JobH[eo]ld|\bheld\b")
_JOB_ID = lazy_pattern(r"(\d+)(?:_(?:(\d+)|\[([^\]]*)\]?))?(?:\+\d+)?", re.ASCII)
# Slurm's numbers for "no value" and "no limit", in 32 and 64 bits. No column that Teho reads has 16
# bits: there, 65534 is a time of 18 h, a number of CPUs, or an energy.
_NO_NUMBER = frozenset(
    number for bits in (32, 64) for number in (2**bits - 1, 2**bits - 2, 2**bits - 3)
)
_MOST_DIGITS = 20
_MOST_GPU_BYTES = 2**50
"""No GPU has more memory. Slurm prints a larger number if it cannot measure the GPU."""
_KEPT = 4096
"""Number of texts whose values are kept: the rows of a job and its steps repeat many of them."""
_NO_WORD = frozenset({"", "N/A", "(null)", "None", "None assigned", "Unknown", "n/a"})


@lru_cache(maxsize=_KEPT)
def state(written: str, reason: str = "") -> JobState:
    """Return the state for words such as `CANCELLED by 1000` or `RUNNING,COMPLETING`."""
    words = [part.split()[0].rstrip("+").upper() for part in written.split(",") if part.split()]
    known = [_STATES.get(part, JobState.UNKNOWN) for part in words] or [JobState.UNKNOWN]
    first = next((strong for strong in _STRONGER if strong in known), known[0])
    if first is JobState.PENDING and _HELD.search(reason):
        return JobState.HELD
    return first


def job_id(written: str) -> tuple[str, str | None] | None:
    """Return number and task of an id such as `123_4`, `123_[1-10%2]`, `123+0`; None: not an id."""
    match = _JOB_ID.fullmatch(written)
    if match is None:
        return None
    return match.group(1), match.group(2) or match.group(3) or None


def word(text: str) -> str:
    """Return the text; empty for Slurm's words for "no value"."""
    return "" if text.strip() in _NO_WORD else text.strip()


def count(text: str) -> int | None:
    """Return a whole number; None: not a number, or Slurm's "no value"."""
    text = text.strip()
    # Without an expression: sacct prints millions of numbers.
    if not text.isdigit() or not text.isascii() or len(text) > _MOST_DIGITS:
        return None
    number = int(text)
    return None if number in _NO_NUMBER else number


def energy(text: str) -> float | None:
    """Return joules. None also for 0, which Slurm prints if it does not measure energy."""
    return float(count(text) or 0) or None


@lru_cache(maxsize=_KEPT)
def moment(text: str) -> datetime | None:
    """Return the time of a number of seconds since 1970; None for 0 and anything else."""
    seconds = count(text)
    if not seconds:
        return None
    try:
        return datetime.fromtimestamp(seconds, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return None


def limit_seconds(text: str) -> float | None:
    """Return seconds of `1-02:00:00`, `30:00`; None for `UNLIMITED` and other words."""
    try:
        return parse_duration(text) if ":" in text else None
    except (UnitError, ValueError, OverflowError):
        return None


@lru_cache(maxsize=_KEPT)
def cpu_seconds(text: str) -> float | None:
    """Return seconds of sacct's TotalCPU: `[D-[HH:]]MM:SS[.mmm]`."""
    clock, _, fraction = text.strip().partition(".")
    seconds = limit_seconds(clock)
    if seconds is None or not (not fraction or (fraction.isdigit() and fraction.isascii())):
        return None
    return seconds + float(f"0.{fraction or 0}")


@lru_cache(maxsize=_KEPT)
def size(text: str) -> int | None:
    """Return bytes of `80G`, `1234K`, `1.50T`; None: not an amount."""
    if not text:
        return None
    try:
        return parse_bytes(text.strip()[:30])
    except (UnitError, ValueError, OverflowError):
        return None


def gpu_memory(text: str) -> int | None:
    """Return bytes of GPU memory; None also for what Slurm prints if it cannot measure the GPU."""
    amount = size(text)
    return amount if amount is not None and amount < _MOST_GPU_BYTES else None


@lru_cache(maxsize=_KEPT)
def tres(text: str) -> Mapping[str, str]:
    """Read trackable resources such as `billing=78,cpu=10,gres/gpu:v100=1,mem=80G,node=1`.

    If GPUs are only listed by type, `gres/gpu` gets their sum.
    """
    found: dict[str, str] = {}
    for item in text.split(","):
        name, equals, value = item.partition("=")
        if equals:
            found[name.strip()] = value.strip()
    typed = [count(value) for name, value in found.items() if name.startswith("gres/gpu:")]
    if typed and "gres/gpu" not in found:
        found["gres/gpu"] = str(sum(number or 0 for number in typed))
    return found


@lru_cache(maxsize=_KEPT)
def exit_status(text: str) -> tuple[int | None, int | None]:
    """Return exit code and signal of `3:0`."""
    code, _, number = text.partition(":")
    return count(code), count(number)


def ending(
    written: JobState, code: int | None, number: int | None
) -> tuple[int | None, int | None]:
    """Return exit code and signal of the program; None: not known.

    Slurm prints 0 for jobs that it ended, and signal 125 for a job that ran out of memory
    (sacct(1), ExitCode). These values are not the program's.
    """
    if not written.ended:
        return None, None
    if number and number < 65:
        return None, number
    if code is not None and (code != 0 or written is JobState.COMPLETED):
        return code, None
    return None, None


def fill_pattern(pattern: str, submission: Submission, job: Job) -> str:
    """Return a log's name with its symbols replaced (sbatch(1), FILENAME PATTERN)."""
    values = {
        "%": "%",
        "A": job.number,
        # For a job without tasks, Slurm writes its number for "no value".
        "a": job.task or "4294967294",
        "j": job.number,
        "J": job.number,
        "x": job.name or submission.name,
        "u": getpass.getuser(),
        "N": re.split(r"[\[,]", job.node_list)[0],
        "n": "0",
        "t": "0",
        "s": "batch",
    }

    def value(match: re.Match[str]) -> str:
        text = values.get(match.group(2), match.group(0))
        return text.zfill(int(match.group(1) or 0))

    # A backslash switches the symbols off.
    if "\\" in pattern:
        return pattern.replace("\\", "")
    return re.sub(r"%(\d{0,2})(.)", value, pattern)
