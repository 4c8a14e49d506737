"""Measures the differences between the clocks of a recording's nodes.

The recorder of the node that began the recording sends its time on a TCP port. `nodes/NODE.json`
has the number of the port. The other nodes ask some times and use the answer with the shortest
round trip, as NTP does (RFC 5905, section 8: offset = ((t1 - t0) + (t2 - t3)) / 2).
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path

from teho.model.run import Clock
from teho.store.layout import node_file, run_file

__all__ = ["ClockServer", "compare_clocks"]

_TIME = struct.Struct("!d")
_REQUESTS = 10
_TIMEOUT_S = 2.0
_TRIES = 30
"""One per second: a shared file system shows a new file to other nodes within this time."""


class ClockServer:
    """Sends this node's time to each client, in a thread."""

    def __init__(self) -> None:
        """Begin to listen on a free port.

        Raises:
            OSError: no port is free.
        """
        self._listener = socket.create_server(("", 0), backlog=1024)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, name="clock", daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                connection.settimeout(_TIMEOUT_S)
                for _ in range(_REQUESTS):
                    if not connection.recv(1):
                        break
                    connection.sendall(_TIME.pack(time.time()))

    def close(self) -> None:
        """Stop listening."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def compare_clocks(run: Path, on_answer: Callable[[Clock], None]) -> None:
    """Compare this node's clock with the node that began a recording, in a thread.

    Args:
        run: the run's directory. The other node's files may still be missing.
        on_answer: called with the difference, if the other node answers.
    """

    def compare() -> None:
        for _ in range(_TRIES):
            with contextlib.suppress(OSError, ValueError, KeyError):
                node = json.loads(run_file(run).read_bytes())["step"]["began_on"]
                on_answer(ask(node, json.loads(node_file(run, node).read_bytes())["clock_port"]))
                return
            time.sleep(1.0)

    threading.Thread(target=compare, name="clock", daemon=True).start()


def ask(host: str, port: int) -> Clock:
    """Return how far this node's clock is ahead of the clock of a host.

    Raises:
        OSError: the host does not answer.
    """
    answers: list[tuple[float, float]] = []
    with socket.create_connection((host, port), timeout=_TIMEOUT_S) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(_REQUESTS):
            sent_at, began = time.time(), time.perf_counter()
            connection.sendall(b"?")
            theirs = _TIME.unpack(connection.recv(_TIME.size, socket.MSG_WAITALL))[0]
            round_trip = time.perf_counter() - began
            answers.append((round_trip, sent_at + round_trip / 2 - theirs))
    round_trip, ahead = min(answers)
    return Clock(ahead_s=round(ahead, 6), uncertainty_s=round(round_trip / 2, 6))
