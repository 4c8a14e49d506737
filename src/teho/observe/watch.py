"""When a recorder goes that has no program of its own: on another node of a job, or attached."""

from __future__ import annotations

import signal
import threading
import time

from teho.devices.proctree import ProcessTree

__all__ = ["Watch"]

# What a scheduler sends to a step before it kills it; other signals are the program's business.
_WARNINGS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
_DESERTED_S = 60.0
"""How long a job may run nothing on a node before a recorder goes that nobody leads any more."""


class Watch:
    """Outlives every signal, and tells when the job's processes on this node are no more."""

    def __init__(self) -> None:
        """Hold back signals from now on."""
        held = frozenset(signal.valid_signals()) - {
            signal.SIGKILL,
            signal.SIGSTOP,
            signal.SIGCHLD,
            signal.SIGCONT,
        }
        signal.pthread_sigmask(signal.SIG_BLOCK, held)
        self.is_warned = False
        """Whether the step is about to be killed: what is not written soon is lost."""
        self._seen_s = time.monotonic()
        threading.Thread(target=self._listen, args=(held,), name="watch", daemon=True).start()

    def _listen(self, held: frozenset[signal.Signals]) -> None:
        while True:
            if signal.sigwait(held) in _WARNINGS:
                self.is_warned = True

    def look(self, tree: ProcessTree) -> None:
        """Take notice of the processes that were there just now."""
        if tree.pids:
            self._seen_s = time.monotonic()

    def is_over(self, period_s: float) -> bool:
        """Tell whether to go, after a warning or with nobody to say so."""
        patience_s = period_s if self.is_warned else _DESERTED_S
        return time.monotonic() - self._seen_s > patience_s
