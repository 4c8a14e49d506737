"""Answers the scrapes of a Prometheus on this machine."""

from __future__ import annotations

import contextlib
import hmac
import signal
import socket
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

__all__ = ["serve_text"]

_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_PATH = "/metrics"
_SLOW_S = 10.0
"""A client that is silent for longer is disconnected."""
_HERE = frozenset({"localhost", "127.0.0.1", "::1", ""})


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, listener: socket.socket, text: Callable[[], str], token: str) -> None:
        super().__init__(("", 0), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.text = text
        self.token = token

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that have gone."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _SLOW_S
    server_version = "teho"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer with the newest values."""
        host = self.headers.get("Host", "")
        if urlsplit(f"//{host}").hostname not in {*_HERE, None}:
            # A page in a browser could reach this server under a name of its own.
            self._answer(403, "text/plain", "this address is only for programs on this machine\n")
        elif self.server.token and not hmac.compare_digest(
            self.headers.get("Authorization", "").encode(), f"Bearer {self.server.token}".encode()
        ):
            self._answer(401, "text/plain", "the request has no valid token\n")
        elif urlsplit(self.path).path != _PATH:
            self._answer(404, "text/plain", f"the values are at {_PATH}\n")
        else:
            self._answer(200, _TYPE, self.server.text())

    def _answer(self, status: int, kind: str, text: str) -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Write no log of the requests."""


def serve_text(listener: socket.socket, text: Callable[[], str], token: str = "") -> None:
    """Answer requests until SIGTERM or Ctrl-C.

    Args:
        listener: a socket that listens.
        text: returns the answer.
        token: that requests must have; empty: none.
    """
    signal.signal(signal.SIGTERM, _exit)
    with _leaving(listener), _Server(listener, text, token) as server:
        server.serve_forever()


def _exit(number: int, _: object) -> None:
    raise SystemExit(128 + number)


@contextlib.contextmanager
def _leaving(listener: socket.socket) -> Iterator[None]:
    path = listener.getsockname() if listener.family == socket.AF_UNIX else ""
    try:
        yield
    finally:
        if path:
            with contextlib.suppress(OSError):
                Path(path).unlink()
