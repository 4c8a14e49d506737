"""Measure the ring of the check: each rank sends to the next one over plain TCP."""

from __future__ import annotations

import socket
import struct
import threading
import time
from statistics import median

from teho.launch.checking.task import CheckTask
from teho.launch.checking.wire import listen

__all__ = ["Ring", "RingError"]

_MESSAGE_BYTES = 4 << 20
_MOST_MESSAGES = 16
_PIECE_BYTES = 1 << 20
_ROUND_TRIPS = 100
_ROUND_TRIPS_S = 0.5
_CONNECT_S = 10.0
_GREETING_S = 5.0
_LONGEST_GREETING_BYTES = 1024
_SECONDS = struct.Struct("!d")


class RingError(Exception):
    """The link to the next rank does not work; the text has the reason."""


class Ring:
    """The two links of a rank: it sends to the next rank and answers the previous one."""

    def __init__(self, task: CheckTask, timeout_s: float) -> None:
        """Listen for the previous rank.

        Args:
            task: this rank.
            timeout_s: time limit of one message.
        """
        self._task = task
        self._timeout_s = timeout_s
        self._listener = listen(0)
        self._following: socket.socket | None = None
        self._name = ""
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def connect(self, host: str, port: int, name: str) -> None:
        """Connect to the next rank.

        Args:
            host: its address.
            port: its port.
            name: its name, such as `rank 6 on r01g03`.

        Raises:
            RingError: it cannot be reached.
        """
        self._name = name
        try:
            # Shorter than the timeout of rank 0, so this rank reports its broken link.
            link = socket.create_connection((host, port), min(_CONNECT_S, self._timeout_s / 2))
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link.sendall(self._greeting(self._task.rank))
            _receive(link, 1)
            link.settimeout(self._timeout_s)
        except OSError as error:
            why = error.strerror or "the other rank does not answer"
            raise RingError(f"cannot reach {name} at {host}:{port}: {why}") from None
        self._following = link

    def echo(self) -> float:
        """Return the median time of a byte to the next rank and back.

        Raises:
            RingError: the link broke.
        """
        times_s: list[float] = []
        end_s = time.monotonic() + _ROUND_TRIPS_S
        while len(times_s) < _ROUND_TRIPS and (not times_s or time.monotonic() < end_s):
            began_s = time.perf_counter()
            self._send(b"p")
            self._answer(1)
            times_s.append(time.perf_counter() - began_s)
        return median(times_s)

    def stream(self, seconds: float) -> float:
        """Return the median rate in bytes/s to the next rank, by the clock of that rank.

        Raises:
            RingError: the link broke.
        """
        message = memoryview(bytes(_MESSAGE_BYTES))
        end_s = time.monotonic() + seconds
        for _ in range(_MOST_MESSAGES):
            self._send(b"m")
            self._send(message)
            if time.monotonic() > end_s:
                break
        self._send(b"e")
        message_s: float = _SECONDS.unpack(self._answer(_SECONDS.size))[0]
        return _MESSAGE_BYTES / message_s

    def _send(self, data: bytes | memoryview) -> None:
        assert self._following is not None  # noqa: S101 - connect() went before
        try:
            self._following.sendall(data)
        except OSError as error:
            raise self._broken(error) from None

    def _answer(self, size_bytes: int) -> bytes:
        assert self._following is not None  # noqa: S101 - connect() went before
        try:
            return _receive(self._following, size_bytes)
        except OSError as error:
            raise self._broken(error) from None

    def _broken(self, error: OSError) -> RingError:
        return RingError(f"the link to {self._name} broke: {error.strerror or 'timed out'}")

    def _serve(self) -> None:
        """Answer the previous rank until it closes the link."""
        try:
            with self._accept() as link:
                self._answer_all(link)
        except OSError:
            return  # the previous rank reports its broken link

    def _accept(self) -> socket.socket:
        """Wait for the previous rank; close connections of other programs."""
        before = (self._task.rank - 1) % self._task.world_size
        expected = self._greeting(before)
        while True:
            link, _ = self._listener.accept()
            try:
                link.settimeout(_GREETING_S)
                if _receive(link, len(expected)) == expected:
                    link.settimeout(None)
                    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    link.sendall(b"k")
                    return link
            except OSError:
                pass
            link.close()

    def _answer_all(self, link: socket.socket) -> None:
        buffer = memoryview(bytearray(_PIECE_BYTES))
        marks_s: list[float] = []
        while True:
            kind = _receive(link, 1)
            if kind == b"p":
                link.sendall(kind)
            elif kind == b"m":
                if not marks_s:
                    marks_s.append(time.perf_counter())
                rest = _MESSAGE_BYTES
                while rest:
                    rest -= _receive_into(link, buffer[:rest])
                marks_s.append(time.perf_counter())
            else:
                pauses_s = [late_s - marks_s[i] for i, late_s in enumerate(marks_s[1:])]
                link.sendall(_SECONDS.pack(median(pauses_s)))

    def _greeting(self, rank: int) -> bytes:
        return f"teho ring of {self._task.step[:64]}, rank {rank}\n".encode()


def _receive(link: socket.socket, size_bytes: int) -> bytes:
    """Return exactly this number of bytes.

    Raises:
        OSError: the link closed too early.
    """
    data = bytearray(size_bytes)
    rest = memoryview(data)
    while rest:
        rest = rest[_receive_into(link, rest) :]
    return bytes(data)


def _receive_into(link: socket.socket, buffer: memoryview) -> int:
    got = link.recv_into(buffer)
    if not got:
        raise ConnectionResetError(0, "the other rank closed the connection")
    return got
