"""What an exit code or a signal usually means, and what to do about it."""

from __future__ import annotations

import signal
from typing import NamedTuple

from teho.explain.exception import shortened
from teho.explain.step import ending
from teho.model.finding import Severity
from teho.model.run import End
from teho.schedulers.advice import Advice
from teho.schedulers.registry import scheduler_or_none
from teho.units import format_duration

__all__ = ["BY_USERS", "EndEvidence", "Meaning", "meaning_of", "named", "number_of"]

BY_USERS = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGTERM})
"""Signals with which users and schedulers end a job: not a fault of the program."""
_SHELL = 128
"""A shell exits with 128 plus the number of the signal that ended its program."""
_TIMEOUT = 124
_STOPPED = "the command `timeout` stopped the program at its time limit"
_BY_EXIT_CODE = {
    126: (
        "a file is not executable",
        "Make the program executable: `chmod +x PROGRAM`.",
    ),
    127: (
        "a command was not found",
        "Load the module, or activate the environment, that has this command.",
    ),
}
_SIGNALS = {int(one): one.name for one in signal.Signals}

_SMALLER_BATCH = (
    "Use a smaller batch size. If you need the same effective batch size, add gradient "
    "accumulation. `teho tune --find batch-size -- …` finds the largest batch that fits into the "
    "memory."
)
_NOT_CTRL_C = "If you did not press Ctrl-C, find the program that sent SIGINT."
_BY_SIGNAL: dict[int, str] = {
    signal.SIGINT: _NOT_CTRL_C,
    signal.SIGHUP: "The terminal or the SSH connection was closed. Use `tmux` or `nohup`, or "
    "submit a job.",
    signal.SIGTERM: "If you did not stop the program yourself, another program or the "
    "system stopped it.",
    **dict.fromkeys(
        (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV),
        "Find the line of code: run the program again with `PYTHONFAULTHANDLER=1`, which prints "
        "Python's stack at the crash.",
    ),
}
_MORE_MEMORY = "Request more memory, or use less memory: a smaller batch or fewer loader workers."
_BY_EXCEPTION = {
    "MemoryError": "Request more memory, or load less data at once.",
    "torch.OutOfMemoryError": _SMALLER_BATCH,
    "torch.cuda.OutOfMemoryError": _SMALLER_BATCH,
    "ModuleNotFoundError": "Activate the environment that has the module, or install the module.",
    "KeyboardInterrupt": _NOT_CTRL_C,
}


class EndEvidence(NamedTuple):
    """What is known about the end of a failed run."""

    end: End
    after_s: float
    """Time from the start to the end."""
    at_time_limit: bool = False
    out_of_memory: bool = False
    """The kernel killed processes of the job because memory ran out."""
    exception: str = ""
    place: str = ""
    """File and line of the program that raised the exception, or called what raised it."""
    scheduler: str | None = None
    job_id: str | None = None
    job_name: str = ""

    @property
    def advice(self) -> Advice:
        """Advice with the options and commands of the scheduler."""
        return scheduler_or_none(self.scheduler).advice

    @property
    def account_command(self) -> str:
        """Command that asks the scheduler for the reason; empty without a job."""
        return self.advice.account_command(self.job_id) if self.job_id else ""


class Meaning(NamedTuple):
    """How a program failed, and what to do."""

    how: str
    """Goes behind `The program `; includes the time at which it ended."""
    action: str
    severity: Severity = Severity.CRITICAL


def number_of(end: End) -> int | None:
    """Return the signal that ended a program, also if a shell reported it as an exit code."""
    if end.signal is not None:
        return end.signal
    code = end.exit_code or 0
    return code - _SHELL if code - _SHELL in _SIGNALS else None


def meaning_of(known: EndEvidence, *, several: bool = False) -> Meaning:
    """Return how a program ended and what to do.

    Args:
        known: what is known about a failed end.
        several: whether the sentence is about several tasks.
    """
    end, after = known.end, f"after {format_duration(known.after_s)}"
    if end.exit_code is None and end.signal is None:
        return _end_of_job(after, known)
    number = number_of(end)
    if end.signal is not None:
        how = f"{'were' if several else 'was'} ended {ending(end)} {after}"
    else:
        how = f"failed {after} with exit code {end.exit_code}"
    if known.out_of_memory and number == signal.SIGKILL:
        return Meaning(f"{how} because memory ran out", _MORE_MEMORY)
    if known.at_time_limit and number in {signal.SIGTERM, signal.SIGKILL}:
        return Meaning(f"{how}, at the job's time limit", _more_time(known))
    if known.exception:
        name = known.exception.partition(":")[0]
        return Meaning(f"{how}{named(known)}", _BY_EXCEPTION.get(name) or _read_log(known))
    if end.exit_code == _TIMEOUT:
        action = "If the program needs more time, raise the limit: `timeout 2h COMMAND`."
        return Meaning(f"{how}: {_STOPPED}", action, Severity.WARNING)
    if end.exit_code in _BY_EXIT_CODE:
        means, action = _BY_EXIT_CODE[end.exit_code]
        return Meaning(f"{how}, which means that {means}", action)
    if number is None:
        return Meaning(how, _read_log(known))
    if end.signal is None:
        name = "Ctrl-C" if number == signal.SIGINT else _SIGNALS[number]
        how = f"{how}, which usually means {name}"
    elif number == signal.SIGINT:
        how = how.replace("by SIGINT", "by Ctrl-C (SIGINT)")
    severity = Severity.WARNING if number in BY_USERS else Severity.CRITICAL
    return Meaning(how, _after_signal(number, known), severity)


def _after_signal(number: int, known: EndEvidence) -> str:
    command = known.account_command
    if number == signal.SIGKILL:
        check = f" Check the job's state: {command}." if command else ""
        return (
            "Compare the job's peak memory with its memory limit: the kernel kills programs if "
            f"memory runs out. A scheduler also kills programs to end a job.{check}"
        )
    if command and number in {signal.SIGHUP, signal.SIGTERM}:
        return f"If you did not stop the job yourself, ask the scheduler why: {command}."
    return _BY_SIGNAL.get(number) or _read_log(known)


def named(known: EndEvidence) -> str:
    """Return the exception and its place, for the end of a sentence; empty if not known."""
    if not known.exception:
        return ""
    return f": {shortened(known.exception)}{f' ({known.place})' if known.place else ''}"


def _read_log(known: EndEvidence) -> str:
    name = known.advice.log(known.job_id, known.job_name or "") if known.job_id else ""
    log = f"the job's log (by default {name})" if name else "what the program printed"
    return f"Read the last lines of {log} and look for the error."


def _more_time(known: EndEvidence) -> str:
    option = known.advice.time
    return (
        f"Request more time{f': {option}' if option else ''}. Save checkpoints, so that the "
        "next job can continue from the last checkpoint."
    )


def _end_of_job(after: str, known: EndEvidence) -> Meaning:
    """Return how a job ended that was recorded from outside."""
    command = known.account_command
    ask = f"Ask the scheduler for details: {command}." if command else _read_log(known)
    return {
        "cancelled": Meaning(
            f"was cancelled {after}",
            f"If you did not cancel the job yourself, ask the scheduler for the reason"
            f"{f': {command}' if command else ''}.",
            Severity.WARNING,
        ),
        "timed_out": Meaning(f"ended at its time limit {after}", _more_time(known)),
        "out_of_memory": Meaning(f"ended {after} because memory ran out", _MORE_MEMORY),
        "node_failed": Meaning(f"ended {after} because a node failed", "Submit the job again."),
        "preempted": Meaning(
            f"was stopped {after}, because another job had priority (preemption)",
            "Submit the job again, and save checkpoints so that the job can continue.",
        ),
    }.get(known.end.job_state, Meaning(f"failed {after}", ask))
