"""Run a scheduler's command. No other module does."""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import IO

import msgspec

from teho.errors import (
    MissingCommandError,
    NoAnswerError,
    RefusedError,
    UnconfiguredError,
)

__all__ = ["Completed", "accepted", "lines_of", "message_of", "reached", "run", "unreachable"]

# Longer than Slurm tries to reach a busy controller (MessageTimeout, 10 s, a few times).
_TIMEOUT_S = 60.0
# Slurm's commands already try for 18 s before they report that the controller does not answer.
_PAUSE_S = 2.0
_PIECE_BYTES = 1 << 16
_ERROR_BYTES = 1 << 16
# Errors of commands that are installed on a machine outside of a cluster.
_UNCONFIGURED = (
    "Could not establish a configuration source",
    "Unable to process configuration file",
    "set the environment variable SGE_ROOT",
    "unable to read qmaster name",
)
# Errors that disappear without an action: the scheduler was busy or down.
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
# Variables that would filter or change answers. Teho's questions name all their options.
_PREFERENCES = ("SQUEUE_", "SACCT_", "SCANCEL_")
# sbatch(1), INPUT ENVIRONMENT VARIABLES: they override the script, so the job and its cost would
# not be as announced. One of them is SBATCH_EXPORT: with NONE, the tasks of srun would not get the
# variables that the script exports.
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
    """Run a scheduler's command and return what it printed, with any exit code.

    It runs in a new session, so Ctrl-C in the terminal does not interrupt it. If it takes too
    long, its whole process group is killed.

    Args:
        argv: command and arguments. They do not pass through a shell.
        timeout_s: for each attempt.
        repeat: whether the command only asks. It then runs again if the scheduler is down, in
            English, without the user's preferences. Other commands get the user's environment,
            because schedulers pass it on to the job, but no variables that override a script.
        again_if_late: with `repeat`: whether it also runs again if it did not end in time.
        environment: additional variables for this command.
        wanted: variables that it gets although they override a script.

    Raises:
        MissingCommandError: the command does not exist.
        NoAnswerError: it did not end in time; with `repeat` also: the scheduler is down.
    """
    variables = {**(_plain() if repeat else _unchanged(wanted)), **(environment or {})}
    if repeat:
        try:
            answer = _once(argv, timeout_s, variables)
        except _LateError:
            if not again_if_late:
                raise
        else:
            if not unreachable(answer):
                return answer
        time.sleep(_PAUSE_S)
    answer = _once(argv, timeout_s, variables)
    return reached(answer) if repeat else answer


def lines_of(
    argv: Sequence[str],
    *,
    silence_s: float,
    environment: Mapping[str, str] | None = None,
    not_there: Sequence[str] = (),
) -> Iterator[str]:
    """Run a command that only asks, and yield its lines, with their line breaks, as they come.

    The command is ended if the caller stops reading.

    Args:
        argv: command and arguments. They do not pass through a shell.
        silence_s: if the command prints nothing for this time, it is ended.
        environment: additional variables for this command.
        not_there: parts of error messages that mean an empty answer.

    Raises:
        MissingCommandError: the command does not exist.
        NoAnswerError: it did not print or end in time, or the scheduler is down.
        RefusedError: it failed.
    """
    with tempfile.TemporaryFile() as errors:
        process = _started(argv, {**_plain(), **(environment or {})}, errors)
        try:
            for data in _pieces(process, argv, silence_s):
                yield _text(data)
            try:
                code = process.wait(silence_s)
            except subprocess.TimeoutExpired:
                raise _late(argv, silence_s) from None
        finally:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if process.stdout:
                process.stdout.close()
        errors.seek(0)
        answer = Completed(tuple(argv), code, "", _text(errors.read(_ERROR_BYTES)))
    if code and any(words in answer.stderr for words in not_there):
        return
    accepted(reached(answer))


def _started(
    argv: Sequence[str], environment: Mapping[str, str], errors: IO[bytes] | int
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise _missing(argv, error) from None


def _pieces(
    process: subprocess.Popen[bytes], argv: Sequence[str], silence_s: float
) -> Iterator[bytes]:
    """Yield whole lines of a command's output."""
    assert process.stdout  # noqa: S101 - it was started with a pipe
    descriptor, rest = process.stdout.fileno(), b""
    while True:
        if not select.select([descriptor], [], [], silence_s)[0]:
            raise _late(argv, silence_s)
        data = os.read(descriptor, _PIECE_BYTES)
        if not data:
            break
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line + b"\n"
    if rest:
        yield rest


def _late(argv: Sequence[str], timeout_s: float) -> _LateError:
    return _LateError(
        f"{argv[0]} did not answer within {timeout_s:.0f} s",
        "an answer of the scheduler",
        "try again later; the site's status page may say more",
    )


def _missing(argv: Sequence[str], error: OSError) -> MissingCommandError:
    return MissingCommandError(
        f"{argv[0]} cannot be started: {error.strerror}",
        "a machine with the scheduler's commands, such as a login node",
        "log in to such a machine, or run `module load` for these commands; `command -v "
        f"{shlex.quote(argv[0])}` then shows the path",
    )


def reached(answer: Completed) -> Completed:
    """Return the answer if it came from the scheduler.

    Raises:
        NoAnswerError: the scheduler was busy or down.
    """
    if unreachable(answer):
        raise NoAnswerError(
            f"the scheduler cannot be reached; {answer.argv[0]} says: {message_of(answer)}",
            "",
            "try again later; the site's status page may say more",
        )
    return answer


def unreachable(answer: Completed) -> bool:
    """Return whether a command failed because the scheduler was busy or down."""
    text = answer.stderr + answer.stdout
    return answer.exit_code != 0 and any(words in text for words in _TRANSIENT)


def message_of(answer: Completed) -> str:
    """Return what the command printed, unchanged, for a message: errors first."""
    text = answer.stderr.strip() or answer.stdout.strip()
    if text:
        return text
    if answer.exit_code < 0:
        return f"(no output; signal {-answer.exit_code} ended it)"
    return f"(no output; exit code {answer.exit_code})"


def accepted(answer: Completed) -> Completed:
    """Return the answer if the command succeeded.

    Raises:
        RefusedError: it failed; the message has what it printed, unchanged. If this machine does
            not belong to a cluster, the message says so, and has only the last line.
    """
    if answer.exit_code == 0:
        return answer
    text = message_of(answer)
    if any(words in text for words in _UNCONFIGURED):
        raise UnconfiguredError(
            f"the scheduler is not configured on this machine ({text.splitlines()[-1]})",
            "a machine of a cluster, such as a login node",
            "log in to such a machine",
        )
    raise RefusedError(f"{answer.argv[0]} says: {text}")


class _LateError(NoAnswerError):
    """One attempt took too long."""


def _plain() -> dict[str, str]:
    """Return the environment without preferences, for messages in English."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_PREFERENCES)}
    return kept | _PLAIN


def _unchanged(wanted: Collection[str]) -> dict[str, str]:
    """Return the environment without the variables that override a script."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in wanted or not name.startswith(_OVERRIDES)
    }


def _once(argv: Sequence[str], timeout_s: float, environment: Mapping[str, str]) -> Completed:
    process = _started(argv, environment, subprocess.PIPE)
    with process:
        try:
            out, errors = process.communicate(timeout=timeout_s)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise _late(argv, timeout_s) from None
            raise
    return Completed(tuple(argv), process.returncode, _text(out), _text(errors))


def _text(data: bytes) -> str:
    return data.decode(errors="surrogateescape")
