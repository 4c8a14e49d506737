"""Starts the server of the portal on a Unix socket, or on a port with a link."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Collection, Iterator
from pathlib import Path
from types import FrameType

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from teho.show.portal.app import Portal
from teho.show.portal.guard import LONGEST_HEADERS, Guard, Link

__all__ = ["serve"]

_CONNECTIONS = 80
_LONGEST_REQUEST_S = 10.0
"""Longest time until a request is complete."""


class _Protocol(H11Protocol):
    """Ends a connection whose request is not complete in time.

    Otherwise, a user who sends one byte a minute could keep all connections busy.
    """

    _timer: asyncio.TimerHandle | None = None

    # As uvicorn's own: its server has only transports that can also write.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._check()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._check()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    @property
    def _is_waiting(self) -> bool:
        return self.conn.their_state in {h11.IDLE, h11.SEND_BODY}

    def _check(self) -> None:
        if not self._is_waiting:
            self._stop()
        elif self._timer is None:
            self._timer = self.loop.call_later(_LONGEST_REQUEST_S, self._end)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self) -> None:
        self._timer = None
        if self._is_waiting:
            self.transport.abort()


class _Server(uvicorn.Server):
    """Ends the streams of events first: they would continue for an hour."""

    def __init__(self, config: uvicorn.Config, portal: Portal) -> None:
        super().__init__(config)
        self._portal = portal

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._portal.end_streams()
        super().handle_exit(sig, frame)


def serve(
    portal: Portal, listener: socket.socket, link: Link | None, hosts: Collection[str]
) -> None:
    """Answer requests until Ctrl-C, SIGTERM or SIGHUP.

    Args:
        portal: the pages.
        listener: where the browser connects.
        link: the secret; None for a Unix socket.
        hosts: names in the header `Host` that are allowed besides the loopback's.
    """
    config = uvicorn.Config(
        Guard(portal.application, link, hosts),
        http=_Protocol,
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        # A log of the requests would have the token.
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_CONNECTIONS,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=LONGEST_HEADERS,
    )
    server = _Server(config, portal)
    # uvicorn raises the signal again when it has ended; a terminal that is closed sends SIGHUP.
    signal.signal(signal.SIGTERM, _exit)
    signal.signal(signal.SIGHUP, server.handle_exit)
    with _leaving(listener, portal):
        server.run(sockets=[listener])


def _exit(number: int, _: object) -> None:
    raise SystemExit(128 + number)


@contextlib.contextmanager
def _leaving(listener: socket.socket, portal: Portal) -> Iterator[None]:
    path = listener.getsockname() if listener.family == socket.AF_UNIX else ""
    try:
        yield
    finally:
        portal.close()
        listener.close()
        if path:
            with contextlib.suppress(OSError):
                Path(path).unlink()
