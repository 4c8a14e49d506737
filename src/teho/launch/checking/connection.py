"""A rank's connection to rank 0, and the program that may use it for the rank."""

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
"""With the timeout, more than rank 0 gives any stage: it is gone then, without a trace."""
_TAIL_BYTES = 2000
_KILLED_S = 5.0


class ConnectError(Exception):
    """Rank 0 cannot be reached, or was lost; the text names this rank and its host."""


class StoppedError(Exception):
    """Rank 0 says that the check is over."""


class Connection:
    """This rank's connection to rank 0."""

    def __init__(self, task: CheckTask, connection: socket.socket, timeout_s: float) -> None:
        """Speak for a task through a connection to rank 0, which gives each stage so long."""
        self._task = task
        self._silence_s = _SILENCE_S + timeout_s
        self._connection = connection
        self.wire = Wire(connection.fileno(), connection.fileno())

    def ask(self, about: str, **data: Any) -> dict[str, Any]:
        """Say something and return what rank 0 says to it, once all others have said theirs.

        Raises:
            ConnectError: rank 0 is gone.
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
            raise ConnectError(self._lost(f"said nothing for {self._silence_s:.0f} s")) from None
        except (EOFError, ForeignError, OSError):
            raise ConnectError(self._lost("ended, or its node did")) from None

    def lend(self, command: Sequence[str]) -> NoReturn:
        """Start a program that speaks to rank 0 in this rank's place, until the check is over.

        It reads and writes messages on its standard input and output. It is killed at the end:
        a collective that hangs cannot be told to stop.

        Raises:
            ConnectError: rank 0 is gone.
            StoppedError: the check is over.
        """
        talkative = bool(os.environ.get("NCCL_DEBUG") or os.environ.get("TORCH_CPP_LOG_LEVEL"))
        program = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Who asked a library to explain itself wants to read it.
            stderr=None if talkative else subprocess.PIPE,
        )
        try:
            self._relay(program)
        except OSError:
            raise ConnectError(self._lost("ended, or its node did")) from None
        finally:
            program.kill()
            # One that is stuck in a driver stays; nobody can do more.
            with contextlib.suppress(subprocess.TimeoutExpired):
                program.wait(_KILLED_S)

    def _relay(self, program: subprocess.Popen[bytes]) -> NoReturn:
        assert program.stdin is not None  # noqa: S101 - a pipe, as is the other
        assert program.stdout is not None  # noqa: S101
        voice = Wire(program.stdout.fileno(), program.stdin.fileno())
        complaints = program.stderr.fileno() if program.stderr else -1
        tail = b""
        poll = select.poll()
        for descriptor in filter(
            lambda one: one >= 0, (self.wire.reading, voice.reading, complaints)
        ):
            poll.register(descriptor, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poll.poll(self._silence_s * 1000)}
            if not ready:
                raise ConnectError(self._lost(f"said nothing for {self._silence_s:.0f} s"))
            if complaints in ready:
                chunk = os.read(complaints, 1 << 16)
                tail = (tail + chunk)[-_TAIL_BYTES:]
                if not chunk:
                    poll.unregister(complaints)
            if voice.reading in ready:
                self._pass_on(voice)
                if voice.closed:
                    poll.unregister(voice.reading)
                    why, killed = _end(program, tail)
                    self.wire.send("failed", why=why, killed=killed)
            if self.wire.reading in ready:
                self._listen(voice)

    def _pass_on(self, voice: Wire) -> None:
        for message in voice.take():
            self.wire.send(**message)

    def _listen(self, voice: Wire) -> None:
        for message in self.wire.take():
            if message["about"] == "stop":
                raise StoppedError
            try:
                voice.send(**message)
            except BrokenPipeError:
                continue  # it has ended, which its own pipe tells
        if self.wire.closed:
            raise ConnectError(self._lost("ended, or its node did"))

    def _lost(self, what: str) -> str:
        return f"{self._task.name} lost rank 0 at {self._task.place}: it {what}"


def connect(task: CheckTask, timeout_s: float) -> Connection:
    """Go to where rank 0 listens, as soon as it does.

    Raises:
        ConnectError: it cannot be reached in time, or somebody else is there.
    """
    connection = Connection(task, _connect(task, timeout_s), timeout_s)
    try:
        greeting = connection.wire.wait(min(_CONNECT_S, timeout_s))
    except (EOFError, ForeignError, OSError) as error:
        said = f"said {error}" if isinstance(error, ForeignError) else "said nothing"
        raise ConnectError(
            f"{task.name}: what answers at {task.place} is not rank 0 of this step: it {said}. "
            "Next: set MASTER_PORT to a free one, the same on all ranks"
        ) from None
    if (greeting.get("magic"), greeting.get("step")) != (MAGIC, task.step):
        raise ConnectError(
            f"{task.name}: what answers at {task.place} is rank 0 of another step "
            f"({greeting.get('step')!r}, this is {task.step!r}). "
            "Next: set MASTER_PORT to one that no other job of that node has"
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
            # Nobody listens, and TCP has connected this end to itself, as it may on one machine.
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
                "Next: see whether rank 0 runs there and what it says; if it waits, set "
                "MASTER_ADDR to its address in the nodes' own network"
            )
        time.sleep(pause_s)
        pause_s = min(_LONGEST_PAUSE_S, 2 * pause_s)


def _end(program: subprocess.Popen[bytes], tail: bytes) -> tuple[str, bool]:
    """Return how a program ended that should have gone on, and whether a signal did it."""
    try:
        code = program.wait(_KILLED_S)
    except subprocess.TimeoutExpired:
        return "its torch closed its output and goes on", False
    if code < 0:
        return f"its torch was killed by {signal.Signals(-code).name}", True
    lines = tail.decode(errors="replace").strip().splitlines()
    last = f": {lines[-1].strip()[:200]}" if lines else ""
    return f"its torch ended with exit code {code}{last}", False
