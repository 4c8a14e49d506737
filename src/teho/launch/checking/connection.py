"""A rank's connection to rank 0, and the second program that may use it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from typing import Any, NoReturn

from teho.launch.checking.peers import MAGIC
from teho.launch.checking.task import CheckTask
from teho.launch.checking.wire import ForeignError, Wire

__all__ = ["ConnectError", "Connection", "StoppedError", "connect"]

_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0
_CONNECT_S = 10.0
_SILENCE_S = 400.0
"""With the timeout, longer than any stage. After that, rank 0 is lost."""
_ENDED = "ended, or its node failed"
_TAIL_BYTES = 2000
_KILLED_S = 5.0


class ConnectError(Exception):
    """Rank 0 cannot be reached, or the connection broke. The text has this rank and host."""


class StoppedError(Exception):
    """Rank 0 has ended the check."""


class Connection:
    """This rank's connection to rank 0."""

    def __init__(self, task: CheckTask, connection: socket.socket, timeout_s: float) -> None:
        """Use a connection to rank 0, which allows `timeout_s` for each stage."""
        self._task = task
        self._silence_s = _SILENCE_S + timeout_s
        self._silence = f"sent nothing for {self._silence_s:.0f} s"
        self._connection = connection
        self.wire = Wire(connection.fileno(), connection.fileno())

    def ask(self, about: str, **data: Any) -> dict[str, Any]:
        """Send a message and return the answer, which rank 0 sends when all ranks are ready.

        Raises:
            ConnectError: the connection to rank 0 broke.
            StoppedError: the check is over.
        """
        try:
            self.wire.send(about, **data)
            while True:
                message = self.wire.wait(self._silence_s)
                if message["about"] == "stop":
                    raise StoppedError
                if message["about"] != "ping":
                    return message
                self.wire.send("pong", at_s=time.time())
        except TimeoutError:
            raise self._lost(self._silence) from None
        except (EOFError, ForeignError, OSError):
            raise self._lost(_ENDED) from None

    def run_program(self, command: Sequence[str]) -> NoReturn:
        """Start a program that exchanges messages with rank 0 until the check is over.

        It reads and writes the messages on its standard input and output. It is killed at the
        end, because a collective that hangs does not react.

        Raises:
            ConnectError: the connection to rank 0 broke.
            StoppedError: the check is over.
        """
        shows_errors = bool(os.environ.get("NCCL_DEBUG") or os.environ.get("TORCH_CPP_LOG_LEVEL"))
        program = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # The user who set these variables wants to read the output.
            stderr=None if shows_errors else subprocess.PIPE,
        )
        try:
            self._relay(program)
        except OSError:
            raise self._lost(_ENDED) from None
        finally:
            program.kill()
            # A process that hangs in a driver cannot be killed.
            with contextlib.suppress(subprocess.TimeoutExpired):
                program.wait(_KILLED_S)

    def _relay(self, program: subprocess.Popen[bytes]) -> NoReturn:
        assert program.stdin is not None  # noqa: S101 - both are pipes
        assert program.stdout is not None  # noqa: S101
        inner = Wire(program.stdout.fileno(), program.stdin.fileno())
        errors = program.stderr.fileno() if program.stderr else None
        tail = b""
        poll = select.poll()
        for descriptor in (self.wire.reading, inner.reading, errors):
            if descriptor is not None:
                poll.register(descriptor, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poll.poll(self._silence_s * 1000)}
            if not ready:
                raise self._lost(self._silence)
            if errors is not None and errors in ready:
                chunk = os.read(errors, 1 << 16)
                tail = (tail + chunk)[-_TAIL_BYTES:]
                if not chunk:
                    poll.unregister(errors)
            if inner.reading in ready:
                for message in inner.take():
                    self.wire.send(**message)
                if inner.closed:
                    poll.unregister(inner.reading)
                    why, killed = _end(program, tail)
                    self.wire.send("failed", why=why, killed=killed)
            if self.wire.reading in ready:
                self._pass_orders(inner)

    def _pass_orders(self, inner: Wire) -> None:
        """Pass messages of rank 0 on to the program."""
        for message in self.wire.take():
            if message["about"] == "stop":
                raise StoppedError
            try:
                inner.send(**message)
            except BrokenPipeError:
                continue  # the program has ended; its output pipe closes too
        if self.wire.closed:
            raise self._lost(_ENDED)

    def _lost(self, what: str) -> ConnectError:
        return ConnectError(
            f"{self._task.name} lost the connection to rank 0 at {self._task.place}: rank 0 {what}"
        )


def connect(task: CheckTask, timeout_s: float) -> Connection:
    """Connect to rank 0 as soon as it listens.

    Raises:
        ConnectError: rank 0 cannot be reached in time, or another program answers.
    """
    connection = Connection(task, _connect(task, timeout_s), timeout_s)
    try:
        greeting = connection.wire.wait(min(_CONNECT_S, timeout_s))
    except (EOFError, ForeignError, OSError) as error:
        sent = f"sent {error}" if isinstance(error, ForeignError) else "sent nothing"
        raise ConnectError(
            f"{task.name}: the program at {task.place} is not rank 0 of this step, because it "
            f"{sent}. Next: set MASTER_PORT to a free port, the same on all ranks"
        ) from None
    if (greeting.get("magic"), greeting.get("step")) != (MAGIC, task.step):
        raise ConnectError(
            f"{task.name}: the program at {task.place} is rank 0 of another step "
            f"({greeting.get('step')!r}, but this step is {task.step!r}). "
            "Next: set MASTER_PORT to a port that no other job of that node uses"
        )
    return connection


def _connect(task: CheckTask, timeout_s: float) -> socket.socket:
    end_s = time.monotonic() + timeout_s
    pause_s = _PAUSE_S
    while True:
        left_s = max(_PAUSE_S, end_s - time.monotonic())
        final = False
        try:
            connection = socket.create_connection(
                (task.address, task.port), min(_CONNECT_S, left_s)
            )
            if connection.getsockname() != connection.getpeername():
                connection.settimeout(None)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connection
            # No process listens there. On one machine, TCP may connect a socket to itself.
            connection.close()
            why = "Connection refused"
        except socket.gaierror as error:
            why = f"the name {task.address} does not resolve ({error.strerror})"
            final = error.errno != socket.EAI_AGAIN
        except UnicodeError:
            why = f"the name {task.address} does not resolve (not a host name)"
            final = True
        except OSError as error:
            why = error.strerror or "no answer"
        if final or time.monotonic() + pause_s > end_s:
            raise ConnectError(
                f"{task.name} cannot reach {task.place}: {why}. "
                "Next: check whether rank 0 runs at this address, and read its messages. If rank 0 "
                "runs and waits for other ranks, set MASTER_ADDR to the address of rank 0 in the "
                "network between the nodes"
            )
        time.sleep(pause_s)
        pause_s = min(_LONGEST_PAUSE_S, 2 * pause_s)


def _end(program: subprocess.Popen[bytes], tail: bytes) -> tuple[str, bool]:
    """Return `(how the program ended too early, whether a signal ended it)`."""
    try:
        code = program.wait(_KILLED_S)
    except subprocess.TimeoutExpired:
        return "its torch process closed its output but still runs", False
    if code < 0:
        return f"its torch process was killed by {signal.Signals(-code).name}", True
    lines = tail.decode(errors="replace").strip().splitlines()
    last = f": {lines[-1].strip()[:200]}" if lines else ""
    return f"its torch process ended with exit code {code}{last}", False
