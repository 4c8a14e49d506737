"""The messages of the check: from a rank to rank 0 and back, over a socket or over pipes."""

from __future__ import annotations

import errno
import json
import socket
import time
from typing import Any

from teho.process.json_lines import LineReader, LineTooLongError, send_all

__all__ = ["ForeignError", "Wire", "listen"]

_LONGEST_BYTES = 1 << 20
_BACKLOG = 4096
"""All ranks come at once."""


class ForeignError(Exception):
    """What came is not a message of the check; the text is how it began."""


class Wire:
    """Messages to and from one other process; each is an object with the key `about`."""

    def __init__(self, reading: int, writing: int) -> None:
        """Exchange messages through two blocking descriptors, which stay the caller's."""
        self.reading = reading
        self._writing = writing
        self._reader = LineReader(reading, _parse, blocking=True, longest_bytes=_LONGEST_BYTES)

    @property
    def closed(self) -> bool:
        """Whether the other end has gone; what it sent before can still be taken."""
        return self._reader.closed

    def send(self, about: str, **data: Any) -> None:
        """Send one message.

        Raises:
            OSError: the other end is gone.
        """
        send_all(self._writing, about=about, **data)

    def take(self) -> list[dict[str, Any]]:
        """Read once, waiting if nothing is there, and return the messages that are whole.

        Raises:
            ForeignError: something else than messages came.
        """
        self._read()
        return self._reader.take()

    def wait(self, within_s: float) -> dict[str, Any]:
        """Return the next message.

        Raises:
            EOFError: the other end is gone.
            ForeignError: something else than a message came.
            TimeoutError: nothing came in time.
        """
        end_s = time.monotonic() + within_s
        while not self._reader.has_messages:
            if self.closed:
                raise EOFError
            if not self._reader.wait(end_s - time.monotonic()):
                raise TimeoutError
            self._read()
        return self._reader.take_one()

    def _read(self) -> None:
        try:
            self._reader.read()
        except LineTooLongError as error:
            raise ForeignError(str(error)) from None


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
