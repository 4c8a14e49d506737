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


def die_like(outcome: Outcome) -> None:
    """End this process exactly as the program ended: same exit code, or same signal."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, AttributeError, ValueError):
            stream.flush()
    if outcome.signal is None:
        os._exit(outcome.exit_code or 0)
    # The program has left its core dump, if it was to leave one; ours would only be in the way.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if outcome.signal not in {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(outcome.signal, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {outcome.signal})
    os.kill(os.getpid(), outcome.signal)
    os._exit(128 + outcome.signal)
