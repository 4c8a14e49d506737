"""The one place where a scheduler's command is run."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Collection, Mapping, Sequence

import msgspec

from teho.errors import MissingCommandError, NoAnswerError, RefusedError

__all__ = ["Completed", "accepted", "reached", "run", "said", "unreachable"]

# Longer than Slurm tries to reach a busy controller (MessageTimeout, 10 s, a few times).
_TIMEOUT_S = 60.0
# Slurm's commands try for 18 s themselves before they say that nobody answers.
_PAUSES_S = (2.0,)
# Words of errors that pass by themselves: the scheduler was busy or away.
_TRANSIENT = (
    "Socket timed out",
    "Unable to contact slurm controller",
    "Unable to establish controller machine",
    "slurm_persist_conn_open",
    "Communication connection failure",
    "Transport endpoint is not connected",
    "Zero Bytes were transmitted or received",
    "Unexpected message received",
    "in standby mode",
    "Insane message length",
    "Connection refused",
    "Connection reset",
    "Connection timed out",
    "Resource temporarily unavailable",
    "Unable to contact",
    "unable to send message to qmaster",
    "unable to contact qmaster",
    "can't connect to service",
    "failed receiving gdi request",
    "got communication error",
)
# They would filter or change answers; Teho's questions say all that they mean.
_PREFERENCES = ("SQUEUE_", "SACCT_", "SCANCEL_")
# sbatch(1), INPUT ENVIRONMENT VARIABLES: they win over what the script says, so that another
# job would run, and be charged, than was announced. SBATCH_EXPORT is among them: with NONE
# srun's tasks would not see what the script exports.
_OVERRIDES = "SBATCH_"
_PLAIN = {"LC_ALL": "C", "LANGUAGE": "C"}


class Completed(msgspec.Struct, frozen=True):
    """A command that has ended."""

    argv: tuple[str, ...]
    exit_code: int
    """Negative: the signal that killed it."""
    stdout: str
    stderr: str


def run(
    argv: Sequence[str],
    *,
    timeout_s: float = _TIMEOUT_S,
    repeat: bool = False,
    again_if_late: bool = True,
    environment: Mapping[str, str] | None = None,
    wanted: Collection[str] = (),
) -> Completed:
    """Run a scheduler's command and return what it said, whatever its exit code.

    It runs in a session of its own, so that an interrupt from the keyboard does not
    tear it apart unseen; when Teho gives it up, its whole process group is killed.

    Args:
        argv: command and arguments; no shell is involved.
        timeout_s: for each attempt.
        repeat: whether asking twice does no harm. Such a command is tried again when
            the scheduler is away, and asked in plain English, without the user's
            preferences. Any other sees the user's environment, because schedulers hand
            it on to the job, without the variables that win over a script.
        again_if_late: whether such a command is also tried again if it did not end in time.
        environment: variables that this command sees beside the others.
        wanted: variables that it sees although they win over a script.

    Raises:
        MissingCommandError: there is no such command.
        NoAnswerError: it did not end in time; of a repeatable one also: the scheduler
            could not be reached.
    """
    variables = {**(_plain() if repeat else _unchanged(wanted)), **(environment or {})}
    pauses = _PAUSES_S if repeat else ()
    for pause_s in pauses:
        try:
            answer = _once(argv, timeout_s, variables)
        except _TimedOutError:
            if not again_if_late:
                raise _late(argv, timeout_s) from None
        else:
            if not unreachable(answer):
                return answer
        time.sleep(pause_s)
    try:
        answer = _once(argv, timeout_s, variables)
    except _TimedOutError:
        raise _late(argv, timeout_s) from None
    return reached(answer) if repeat else answer


def _late(argv: Sequence[str], timeout_s: float) -> NoAnswerError:
    return NoAnswerError(
        f"{argv[0]} did not answer within {timeout_s:.0f} s",
        "an answer of the scheduler",
        "try again later; the site's status page may say more",
    )


def reached(answer: Completed) -> Completed:
    """Return an answer that is the scheduler's own.

    Raises:
        NoAnswerError: the scheduler was busy or away.
    """
    if unreachable(answer):
        raise NoAnswerError(
            f"the scheduler cannot be reached; {answer.argv[0]} says: {said(answer)}",
            "",
            "try again later; the site's status page may say more",
        )
    return answer


def unreachable(answer: Completed) -> bool:
    """Return whether a command failed because the scheduler was busy or away."""
    text = answer.stderr + answer.stdout
    return answer.exit_code != 0 and any(words in text for words in _TRANSIENT)


def said(answer: Completed) -> str:
    """Return the command's own words, on errors first, as they stand, for a message."""
    text = answer.stderr.strip() or answer.stdout.strip()
    if text:
        return text
    if answer.exit_code < 0:
        return f"nothing, killed by signal {-answer.exit_code}"
    return f"nothing, with exit code {answer.exit_code}"


def accepted(answer: Completed) -> Completed:
    """Return an answer whose command succeeded.

    Raises:
        RefusedError: it failed; its words are kept as they are.
    """
    if answer.exit_code != 0:
        raise RefusedError(f"{answer.argv[0]} says: {said(answer)}")
    return answer


class _TimedOutError(Exception):
    """One attempt took too long."""


def _plain() -> dict[str, str]:
    """Return the environment without preferences, in plain English."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_PREFERENCES)}
    return kept | _PLAIN


def _unchanged(wanted: Collection[str]) -> dict[str, str]:
    """Return the environment in which a script means what it says."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in wanted or not name.startswith(_OVERRIDES)
    }


def _once(argv: Sequence[str], timeout_s: float, environment: Mapping[str, str]) -> Completed:
    try:
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise MissingCommandError(
            f"{argv[0]} cannot be started: {error.strerror}",
            "a machine with the scheduler's commands, such as a login node",
            "log in there, or `module load` them; `command -v "
            f"{shlex.quote(argv[0])}` then shows where it is",
        ) from None
    with process:
        try:
            out, errors = process.communicate(timeout=timeout_s)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise _TimedOutError from None
            raise
    return Completed(tuple(argv), process.returncode, _text(out), _text(errors))


def _text(data: bytes) -> str:
    return data.decode(errors="surrogateescape")
