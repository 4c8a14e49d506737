"""Finds out whether a signal reached the recorder, and with it the whole process group."""

from __future__ import annotations

import os
import signal
import threading

from teho.process.json_lines import send

__all__ = ["is_busy", "is_pending", "report_signals"]


def report_signals(back: int) -> None:
    """In the recorder: report each signal to the supervisor, and do not end."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, []) - {signal.SIGCHLD}

    def listen() -> None:
        while True:
            send(back, signal=signal.sigwaitinfo(blocked).si_signo)

    threading.Thread(target=listen, name="signals", daemon=True).start()


def is_pending(pid: int, number: int) -> bool:
    """Return whether a signal is pending in the recorder, which blocks all signals."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:  # noqa: PTH123 - loads late
            pending = next(line for line in file if line.startswith(b"ShdPnd:"))
    except (OSError, StopIteration):
        return False
    return bool(int(pending.split()[1], 16) >> (number - 1) & 1)


def is_busy(pid: int) -> bool:
    """Return whether a thread of the recorder runs or waits for a core: it may yet report."""
    folder = f"/proc/{pid}/task"
    try:
        for thread in os.listdir(folder):  # noqa: PTH208 - loads late
            with open(f"{folder}/{thread}/stat", "rb") as file:  # noqa: PTH123 - loads late
                if file.read().rpartition(b") ")[2].startswith(b"R"):
                    return True
    except OSError:
        pass
    return False
