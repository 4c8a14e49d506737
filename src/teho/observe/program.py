"""A program's end, and how to end like it."""

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
    """How the program ended, and what went wrong with the recording."""

    elapsed_s: float
    exit_code: int | None
    signal: int | None
    cpu_s: float
    peak_process_bytes: int
    troubles: list[tuple[float, str]] = field(default_factory=list)
    on_purpose: str = ""
    """Why it was ended though nothing was wrong with it."""


def die_like(outcome: Outcome) -> None:
    """End this process exactly as the program ended: same exit code, or same signal.

    A program that was ended on purpose has done what was wanted of it: exit code 0.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, AttributeError, ValueError):
            stream.flush()
    if outcome.on_purpose:
        os._exit(0)
    if outcome.signal is None:
        os._exit(outcome.exit_code or 0)
    # The program has left its core dump, if it was to leave one; ours would only be in the way.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if outcome.signal not in {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(outcome.signal, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {outcome.signal})
    os.kill(os.getpid(), outcome.signal)
    os._exit(128 + outcome.signal)
