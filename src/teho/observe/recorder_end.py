"""When a recorder goes that has no program of its own: on another node of a job, or attached."""

from __future__ import annotations

import signal
import threading
import time

from teho.devices.host.proctree import ProcessTree

__all__ = ["RecorderEnd"]

# What a scheduler sends to a step before it kills it; other signals are the program's business.
_WARNINGS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
_DESERTED_S = 60.0
"""How long a job may run nothing on a node before a recorder goes that nobody leads any more."""


class RecorderEnd:
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
        self._warned_s: float | None = None
        self._looked_s = self._seen_s = time.monotonic()
        threading.Thread(target=self._listen, args=(held,), name="watch", daemon=True).start()

    def _listen(self, held: frozenset[signal.Signals]) -> None:
        while True:
            if signal.sigwait(held) in _WARNINGS:
                self._warned_s = time.monotonic()

    @property
    def is_warned(self) -> bool:
        """Whether the step is about to be killed: what is not written soon is lost."""
        return self._warned_s is not None

    def look(self, tree: ProcessTree) -> None:
        """Take notice of the processes that were there just now."""
        self._looked_s = time.monotonic()
        if not tree.is_deserted:
            self._seen_s = self._looked_s

    @property
    def is_over(self) -> bool:
        """Whether to go: nobody is left after a warning, or for long with nobody to lead us."""
        if self._warned_s is not None:
            return self._seen_s < self._looked_s and self._warned_s < self._looked_s
        return time.monotonic() - self._seen_s > _DESERTED_S
