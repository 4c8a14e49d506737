"""Messages between processes, through pipes and sockets: one JSON object per line.

`teho launch --check` loads this file in the user's Python, so it needs only Python 3.8 and the
standard library.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

__all__ = ["LineReader", "LineTooLongError", "send", "send_all", "wait_for"]

_CHUNK_BYTES = 1 << 16


class LineTooLongError(ValueError):
    """A line has more bytes than the reader allows; the text is its beginning."""


def send(descriptor: int, **message: Any) -> None:
    """Write one message. It is lost if the pipe is full or its reader has closed it."""
    with contextlib.suppress(OSError):
        os.write(descriptor, json.dumps(message).encode() + b"\n")


def send_all(descriptor: int, **message: Any) -> None:
    """Write one whole message to a blocking descriptor.

    Raises:
        OSError: the reader has closed it.
    """
    rest = json.dumps(message).encode() + b"\n"
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def wait_for(descriptors: Sequence[int], timeout_s: float | None = None) -> bool:
    """Wait until a descriptor can be read or is at its end; return False after the time-out."""
    # Not select(2): it fails for descriptors above 1023, which may be inherited.
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(None if timeout_s is None else max(0.0, timeout_s) * 1000))


class LineReader:
    """Reads messages from a descriptor.

    Args:
        descriptor: the reading end; the caller closes it.
        parse: converts a line to a message; by default, a line that is not a JSON object becomes
            `{"said": line}`.
        blocking: leave the descriptor in blocking mode, because it is also written to. Then
            `read` waits for data.
        longest_bytes: the longest line that is accepted; None: any length.

    Attributes:
        closed: whether the writer has closed its end; earlier messages can still be taken.
    """

    def __init__(
        self,
        descriptor: int,
        parse: Callable[[bytes], dict[str, Any]] | None = None,
        *,
        blocking: bool = False,
        longest_bytes: int | None = None,
    ) -> None:
        if not blocking:
            os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self.closed = False
        self._parse = parse or _message
        self._longest_bytes = longest_bytes
        self._rest = b""
        self._waiting: deque[dict[str, Any]] = deque()

    @property
    def has_messages(self) -> bool:
        """Whether messages were read but not taken yet; poll(2) does not report these."""
        return bool(self._waiting)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for a message or the end of the input; return False after the time-out."""
        if self.has_messages or self.closed:
            return True
        return wait_for([self.descriptor], timeout_s)

    def read(self) -> bool:
        """Read once; return whether there may be more.

        Raises:
            LineTooLongError: see `longest_bytes`.
            ValueError: `parse` raised it for a line.
        """
        try:
            chunk = os.read(self.descriptor, _CHUNK_BYTES)
        except BlockingIOError:
            return False
        except ConnectionError:
            chunk = b""  # the other end of a socket has died
        self.closed = not chunk
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if self._longest_bytes is not None and len(self._rest) > self._longest_bytes:
            raise LineTooLongError(ascii(self._rest[:40].decode("latin-1")))
        self._waiting.extend(map(self._parse, lines))
        return not self.closed

    def take(self) -> list[dict[str, Any]]:
        """Return and forget all messages that were read."""
        taken = list(self._waiting)
        self._waiting.clear()
        return taken

    def take_one(self) -> dict[str, Any]:
        """Return and forget the oldest message that was read.

        Raises:
            IndexError: no message is waiting.
        """
        return self._waiting.popleft()

    def messages(self) -> Iterator[dict[str, Any]]:
        """Read all that is available, and yield the messages; not for a blocking descriptor.

        If the caller stops early, the next call yields the rest.
        """
        while not self.closed and self.read():
            continue
        while self._waiting:
            yield self.take_one()


def _message(line: bytes) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        message = json.loads(line)
        if isinstance(message, dict):
            return message
    return {"said": line.decode(errors="replace")}
