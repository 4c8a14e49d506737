"""Exchange messages between a rank and rank 0, over a socket or over pipes."""

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
"""All ranks connect at the same time."""


class ForeignError(Exception):
    """The received data is not a message of the check; the text is its beginning."""


class Wire:
    """Messages to and from one other process; each is an object with the key `about`."""

    def __init__(self, reading: int, writing: int) -> None:
        """Use two blocking descriptors. The caller closes them."""
        self.reading = reading
        self._writing = writing
        self._reader = LineReader(reading, _parse, blocking=True, longest_bytes=_LONGEST_BYTES)

    @property
    def closed(self) -> bool:
        """Whether the other end has closed. Its earlier messages can still be taken."""
        return self._reader.closed

    def send(self, about: str, **data: Any) -> None:
        """Send one message.

        Raises:
            OSError: the other end has closed.
        """
        send_all(self._writing, about=about, **data)

    def take(self) -> list[dict[str, Any]]:
        """Read once, if necessary after waiting, and return the complete messages.

        Raises:
            ForeignError: the data is not a message.
        """
        self._read()
        return self._reader.take()

    def wait(self, within_s: float) -> dict[str, Any]:
        """Return the next message.

        Raises:
            EOFError: the other end has closed.
            ForeignError: the data is not a message.
            TimeoutError: no message came in time.
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
    """Return a socket that listens on all addresses of this machine, with IPv6 if possible.

    Raises:
        OSError: the port cannot be used; EADDRINUSE: another program uses it.
    """
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(
                ("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=_BACKLOG
            )
        except OSError as error:
            # The kernel may support IPv6 without having an IPv6 address.
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
