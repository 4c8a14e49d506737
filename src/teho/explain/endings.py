"""What an exit code or a signal usually means, and what to do about it."""

from __future__ import annotations

import signal
from typing import NamedTuple

from teho.explain.exception import shortened
from teho.explain.step import ending
from teho.model.finding import Severity
from teho.model.run import End
from teho.schedulers.registry import scheduler_or_none
from teho.units import format_duration

__all__ = ["BY_USERS", "EndEvidence", "Meaning", "meaning_of", "named", "number_of"]

BY_USERS = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGTERM})
"""Signals with which users and schedulers end a job: not a fault of the program."""
_SHELL = 128
"""A shell exits with this plus the number of the signal that ended its program."""
_TIMEOUT, _NOT_EXECUTABLE, _NOT_FOUND = 124, 126, 127
_SIGNALS = {int(one): one.name for one in signal.Signals}

_CRASHED = frozenset({signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV})
_SMALLER_BATCH = (
    "Use a smaller batch size, with gradient accumulation if you need the same effective batch."
)
_OF_EXCEPTIONS = {
    "MemoryError": "Request more memory, or load less data at once.",
    "torch.OutOfMemoryError": _SMALLER_BATCH,
    "torch.cuda.OutOfMemoryError": _SMALLER_BATCH,
    "ModuleNotFoundError": "Activate the environment that has the module, or install the module.",
    "KeyboardInterrupt": "If you did not press Ctrl-C, look for what sent SIGINT.",
}


class EndEvidence(NamedTuple):
    """What is known of a failed run beside its end."""

    at_time_limit: bool = False
    out_of_memory: bool = False
    """The kernel killed processes of the job because memory ran out."""
    exception: str = ""
    place: str = ""
    """File and line of the program that raised it, or called what did."""
    scheduler: str | None = None
    job_id: str | None = None
    job_name: str = ""


class Meaning(NamedTuple):
    """One way to fail."""

    how: str
    """Goes behind `The program `; has the time at which it ended."""
    action: str
    severity: Severity = Severity.CRITICAL


def number_of(end: End) -> int | None:
    """Return the signal that ended a program, also if a shell only reported it."""
    if end.signal is not None:
        return end.signal
    code = end.exit_code or 0
    return code - _SHELL if code - _SHELL in _SIGNALS else None


def meaning_of(end: End, after_s: float, seen: EndEvidence, *, several: bool = False) -> Meaning:
    """Say how a program ended and what to do.

    Args:
        end: a failed end.
        after_s: how long after the start.
        seen: what else is known.
        several: the sentence is about several tasks.
    """
    after = f"after {format_duration(after_s)}"
    if end.exit_code is None and end.signal is None:
        return _of_job(end, after, seen)
    number = number_of(end)
    if end.signal is not None:
        how = f"{'were' if several else 'was'} ended {ending(end)} {after}"
    else:
        how = f"failed {after} with exit code {end.exit_code}"
    if seen.out_of_memory and number == signal.SIGKILL:
        return Meaning(f"{how} because memory ran out", _more_memory())
    if seen.at_time_limit and number in {signal.SIGTERM, signal.SIGKILL}:
        return Meaning(f"{how}, at the job's time limit", _more_time(seen))
    if seen.exception:
        name = seen.exception.partition(":")[0]
        return Meaning(f"{how}{named(seen)}", _OF_EXCEPTIONS.get(name) or _read(seen))
    return _usual(end, number, how, seen)


def _usual(end: End, number: int | None, how: str, seen: EndEvidence) -> Meaning:
    if end.exit_code == _TIMEOUT:
        action = "If the program needs more time, raise the limit: `timeout 2h COMMAND`."
        return Meaning(f"{how}: `timeout` stopped it at its time limit", action, Severity.WARNING)
    if end.exit_code == _NOT_FOUND:
        return Meaning(
            f"{how}, which means that a command was not found",
            "Load the module, or activate the environment, that has this command.",
        )
    if end.exit_code == _NOT_EXECUTABLE:
        return Meaning(
            f"{how}, which means that a file is not executable",
            "Make the program executable: `chmod +x PROGRAM`.",
        )
    if number is None:
        return Meaning(how, _read(seen))
    if end.signal is None:
        name = "Ctrl-C" if number == signal.SIGINT else _SIGNALS[number]
        how = f"{how}, which usually means {name}"
    elif number == signal.SIGINT:
        how = how.replace("by SIGINT", "by Ctrl-C (SIGINT)")
    return Meaning(
        how, _of_signal(number, seen), Severity.WARNING if number in BY_USERS else Severity.CRITICAL
    )


def _of_signal(number: int, seen: EndEvidence) -> str:
    if number == signal.SIGKILL:
        return _killed(seen)
    if number == signal.SIGINT:
        return "If you did not press Ctrl-C, look for what sent SIGINT."
    if number in BY_USERS:
        asked = _account(seen)
        if asked:
            return f"If you did not stop it yourself, ask the scheduler for the reason: {asked}."
        if number == signal.SIGHUP:
            return (
                "The terminal or the SSH connection was closed. Use `tmux` or `nohup`, or submit a "
                "job."
            )
        return "If you did not stop it yourself, another program or the system did."
    if number in _CRASHED:
        return (
            "Find the line: run it again with `PYTHONFAULTHANDLER=1`, which prints Python's stack "
            "at the crash."
        )
    return _read(seen)


def _killed(seen: EndEvidence) -> str:
    asked = _account(seen)
    ask = f" Check the job's state: {asked}." if asked else ""
    return (
        "The kernel does this if memory runs out; a scheduler does it to end a job. Compare the "
        f"job's peak memory with its limit.{ask}"
    )


def _account(seen: EndEvidence) -> str:
    if not seen.job_id:
        return ""
    return scheduler_or_none(seen.scheduler).advice.account_command(seen.job_id)


def named(seen: EndEvidence) -> str:
    """Return the exception and its place, to go behind what was said; empty if it is not known."""
    if not seen.exception:
        return ""
    return f": {shortened(seen.exception)}{f' ({seen.place})' if seen.place else ''}"


def _read(seen: EndEvidence) -> str:
    advice = scheduler_or_none(seen.scheduler).advice
    name = advice.log(seen.job_id, seen.job_name or "") if seen.job_id else ""
    log = f"the job's log, by default {name}" if name else "what the program printed"
    return f"Read the last lines of {log} and look for the error."


def _more_memory() -> str:
    return "Request more memory, or use less: a smaller batch or fewer loader workers."


def _more_time(seen: EndEvidence) -> str:
    option = scheduler_or_none(seen.scheduler).advice.time
    return (
        f"Request more time{f': {option}' if option else ''}. Save checkpoints, so that the "
        "next job can continue from the last one."
    )


def _of_job(end: End, after: str, seen: EndEvidence) -> Meaning:
    """Say how a job ended that was recorded from outside."""
    asked = _account(seen)
    ask = f"Ask the scheduler for details: {asked}." if asked else _read(seen)
    return {
        "cancelled": Meaning(
            f"was cancelled {after}",
            f"If you did not cancel it yourself, ask the scheduler for the reason"
            f"{f': {asked}' if asked else ''}.",
            Severity.WARNING,
        ),
        "timed_out": Meaning(f"ended at its time limit {after}", _more_time(seen)),
        "out_of_memory": Meaning(f"ended {after} because memory ran out", _more_memory()),
        "node_failed": Meaning(f"ended {after} because a node failed", "Submit the job again."),
        "preempted": Meaning(
            f"ended {after}, preempted by another job",
            "Submit it again, and save checkpoints so that it can continue.",
        ),
    }.get(end.job_state, Meaning(f"failed {after}", ask))
