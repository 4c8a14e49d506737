"""Decides when a recorder without a program ends: on another node of a job, or attached."""

from __future__ import annotations

import signal
import threading
import time

from teho.devices.host.proctree import ProcessTree

__all__ = ["RecorderEnd"]

# A scheduler sends these to a step before it kills it. Other signals are for the program.
_WARNINGS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
_DESERTED_S = 60.0
"""A recorder without a supervisor ends if the job has had no process on its node for this time."""


class RecorderEnd:
    """Blocks all signals, and finds out when the job's processes on this node have ended."""

    def __init__(self, deserted_s: float = _DESERTED_S) -> None:
        """Block the signals from now on.

        Args:
            deserted_s: end after this time without a process of the job, if there is no supervisor.
        """
        self._deserted_s = deserted_s
        blocked = frozenset(signal.valid_signals()) - {
            signal.SIGKILL,
            signal.SIGSTOP,
            signal.SIGCHLD,
            signal.SIGCONT,
        }
        signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
        self._warned_s: float | None = None
        self._checked_s = self._seen_s = time.monotonic()
        threading.Thread(target=self._listen, args=(blocked,), name="signals", daemon=True).start()

    def _listen(self, blocked: frozenset[signal.Signals]) -> None:
        while True:
            if signal.sigwait(blocked) in _WARNINGS:
                self._warned_s = time.monotonic()

    @property
    def is_warned(self) -> bool:
        """Whether the scheduler is about to kill the step: rows have to be written soon."""
        return self._warned_s is not None

    def check(self, tree: ProcessTree) -> None:
        """Note whether the job has processes now."""
        self._checked_s = time.monotonic()
        if not tree.is_deserted:
            self._seen_s = self._checked_s

    @property
    def is_over(self) -> bool:
        """Whether no process is left after a warning; without a supervisor, for a long time."""
        if self._warned_s is not None:
            return self._seen_s < self._checked_s and self._warned_s < self._checked_s
        return time.monotonic() - self._seen_s > self._deserted_s
