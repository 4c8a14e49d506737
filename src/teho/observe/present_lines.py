"""The lines in which a node's Python processes are, while a viewer watches the run.

The recorder asks its stack sampler with each sample that it sends, and the sampler answers at most
once per second. Each message is one datagram, and no side ever waits for the other.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping, Sequence

import msgspec

from teho.model.live import LineNow, ProcessNow

__all__ = ["MOST_LINES", "LineAnswers", "LineQuestions", "with_lines"]

MOST_LINES = 16
"""Processes whose lines are sent, at most: a sample must not become much longer."""
_ASKED_S = 10.0
"""The sampler answers for this time after a question. In a very large job, samples are sent every
few seconds."""
_PERIOD_S = 0.9
"""Least time between two answers."""
_OLD_S = 5.0
"""An older answer is dropped. After a break, the first answers in the socket are old."""
_LARGEST_BYTES = 1 << 16
_QUESTION = b"?"


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    at_s: float
    """Monotonic time."""
    lines: dict[int, LineNow]
    """Process id -> where its main thread is."""


class LineQuestions:
    """The end of the recorder.

    Args:
        connection: its socket; the caller closes it.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._newest = _Answer(at_s=float("-inf"), lines={})

    def ask(self, now_s: float) -> Mapping[int, LineNow]:
        """Ask for the lines, and return the newest answer that has come: process id -> its line.

        Args:
            now_s: monotonic time.
        """
        with contextlib.suppress(OSError):  # the sampler has ended, or is busy
            self._socket.send(_QUESTION)
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            while True:
                data = self._socket.recv(_LARGEST_BYTES)
                self._newest = msgspec.json.decode(data, type=_Answer)
        return self._newest.lines if now_s - self._newest.at_s < _OLD_S else {}


class LineAnswers:
    """The end of the stack sampler.

    Args:
        connection: its socket. None: no recorder ever asks.
    """

    def __init__(self, connection: socket.socket | None) -> None:
        if connection is not None:
            connection.setblocking(False)
        self._socket = connection
        self._asked_s = self._checked_s = float("-inf")

    def is_watched(self, now_s: float) -> bool:
        """Return whether a viewer watches the run, as far as this is known.

        Args:
            now_s: monotonic time.
        """
        return now_s - self._asked_s < _ASKED_S

    def is_due(self, now_s: float) -> bool:
        """Return whether it is time for an answer. Most calls only compare two times.

        Args:
            now_s: monotonic time.
        """
        if self._socket is None or now_s - self._checked_s < _PERIOD_S:
            return False
        self._checked_s = now_s
        with contextlib.suppress(OSError):
            while self._socket.recv(1):
                self._asked_s = now_s
        return self.is_watched(now_s)

    def send(self, now_s: float, lines: Mapping[int, LineNow]) -> None:
        """Send an answer; it is lost if the recorder does not read.

        Args:
            now_s: monotonic time.
            lines: process id -> where its main thread is.
        """
        data = msgspec.json.encode(_Answer(at_s=now_s, lines=dict(lines)))
        with contextlib.suppress(OSError):
            if self._socket is not None:
                self._socket.send(data)


def with_lines(processes: Sequence[ProcessNow], lines: Mapping[int, LineNow]) -> list[ProcessNow]:
    """Return processes with the lines in which they are.

    Args:
        processes: of one node.
        lines: process id -> where its main thread is.
    """
    return [
        msgspec.structs.replace(one, line=lines[one.pid]) if one.pid in lines else one
        for one in processes
    ]
