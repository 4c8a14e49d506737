"""One JSON line a message: from a rank to rank 0 and back, over a socket or over pipes."""

from __future__ import annotations

import errno
import json
import os
import select
import socket
import time
from collections import deque
from typing import Any

__all__ = ["ForeignError", "Wire", "listen"]

_LONGEST_BYTES = 1 << 20
_BACKLOG = 4096
"""All ranks come at once."""


class ForeignError(Exception):
    """What came is not a message of the check; the text is how it began."""


class Wire:
    """Messages to and from one other process; each is an object with the key `about`."""

    def __init__(self, reading: int, writing: int) -> None:
        """Speak through two blocking descriptors, which stay the caller's."""
        self.reading = reading
        self.closed = False
        """Whether the other end is gone; what it had said before can still be taken."""
        self._writing = writing
        self._rest = b""
        self._waiting: deque[dict[str, Any]] = deque()

    def send(self, about: str, **data: Any) -> None:
        """Send one message.

        Raises:
            OSError: the other end is gone.
        """
        rest = json.dumps({"about": about, **data}).encode() + b"\n"
        while rest:
            rest = rest[os.write(self._writing, rest) :]

    def take(self) -> list[dict[str, Any]]:
        """Read once, waiting if nothing is there, and return the messages that are whole.

        Raises:
            ForeignError: something else than messages came.
        """
        self._read()
        taken = list(self._waiting)
        self._waiting.clear()
        return taken

    def wait(self, within_s: float) -> dict[str, Any]:
        """Return the next message.

        Raises:
            EOFError: the other end is gone.
            ForeignError: something else than a message came.
            TimeoutError: nothing came in time.
        """
        end_s = time.monotonic() + within_s
        poll = select.poll()
        poll.register(self.reading, select.POLLIN)
        while not self._waiting:
            if self.closed:
                raise EOFError
            if not poll.poll(max(0.0, end_s - time.monotonic()) * 1000):
                raise TimeoutError
            self._read()
        return self._waiting.popleft()

    def _read(self) -> None:
        try:
            chunk = os.read(self.reading, 1 << 16)
        except ConnectionError:
            chunk = b""
        self.closed = not chunk
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > _LONGEST_BYTES:
            raise ForeignError(_beginning(self._rest))
        self._waiting.extend(map(_parse, lines))


def listen(port: int) -> socket.socket:
    """Return a socket that listens on all of this machine's addresses, IPv6 where it is there.

    Raises:
        OSError: the port cannot be had; EADDRINUSE: somebody has it.
    """
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(
                ("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=_BACKLOG
            )
        except OSError as error:
            # A kernel may know IPv6 and have no address of it.
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                raise
    return socket.create_server(("", port), backlog=_BACKLOG)


def _parse(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except ValueError:
        raise ForeignError(_beginning(line)) from None
    if not isinstance(message, dict) or not isinstance(message.get("about"), str):
        raise ForeignError(_beginning(line))
    return message


def _beginning(line: bytes) -> str:
    return ascii(line[:40].decode("latin-1"))
