"""The end of a program, and how to end this process in the same way."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from dataclasses import dataclass, field

__all__ = ["Outcome", "die_like"]


@dataclass
class Outcome:
    """How the program ended, and the problems of the recording."""

    elapsed_s: float
    exit_code: int | None
    signal: int | None
    cpu_s: float
    peak_process_bytes: int
    troubles: list[tuple[float, str]] = field(default_factory=list)
    on_purpose: str = ""
    """Why Teho ended a program that had no problem."""


def die_like(outcome: Outcome) -> None:
    """End this process as the program ended: with the same exit code, or the same signal.

    If Teho ended the program on purpose, the exit code is 0.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, AttributeError, ValueError):
            stream.flush()
    if outcome.on_purpose:
        os._exit(0)
    if outcome.signal is None:
        os._exit(outcome.exit_code or 0)
    # The program may have written a core dump; this process must not overwrite it.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if outcome.signal not in {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(outcome.signal, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {outcome.signal})
    os.kill(os.getpid(), outcome.signal)
    os._exit(128 + outcome.signal)
