"""The tasks of one node choose a leader: the recorder of this task serves the whole node.

They use a socket in Linux's abstract namespace, named after the user and the step. The task that
binds it first is the leader; the others connect to its recorder. The kernel decides, and removes
the socket when it is closed.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from teho.process.json_lines import LineReader, send, wait_for

__all__ = ["NodeLeader", "PeerTask", "PeerTasks", "report_task", "visible_to_any"]

_TRIES = 20
_BACKLOG = 4096
_ARRIVAL_S = 30.0
"""Tasks of one node start within a second or two. A node that swaps takes longer."""
_WAIT_S, _SEAL_WAIT_S = 8.0, 60.0
"""Maximum time to wait for the recorder's answer: a bit less than the supervisor waits. And how
much longer if the recorder says that it seals, as the supervisor does."""


class NodeLeader:
    """The socket that connects the tasks of a node."""

    def __init__(self, key: str, rank: int, task_count: int) -> None:
        """Become the leader, or connect to it.

        Args:
            key: the step's.
            rank: this task's.
            task_count: the number of tasks of the step on this node.

        Raises:
            OSError: no socket can be used.
        """
        self.rank = rank
        self.task_count = task_count
        name = b"\0teho-" + hashlib.sha256(f"{os.getuid()} {key}".encode()).hexdigest().encode()
        for _ in range(_TRIES):
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            with contextlib.suppress(OSError):
                self._socket.bind(name)
                self._socket.listen(_BACKLOG)
                self.records = True
                """Whether this task's recorder records the node."""
                return
            with contextlib.suppress(OSError):
                self._socket.connect(name)
                if _user_of(self._socket) == os.getuid():
                    self.records = False
                    return
            # The leader has just ended; or another user's process uses the name.
            self._socket.close()
            time.sleep(0.05)
        raise OSError(0, "another user's process uses the socket of this step's recorder")

    @property
    def descriptor(self) -> int:
        """The listening socket, or the connection to the recorder."""
        return self._socket.fileno()

    def leave(self) -> None:
        """Close the socket in the supervisor; only the recorder keeps it open."""
        self._socket.close()


def _user_of(connection: socket.socket) -> int:
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int(struct.unpack("3i", credentials)[1])


def report_task(
    control: int, back: int, program_pid: int, leader: NodeLeader, helper_pids: Sequence[int] = ()
) -> None:
    """Report this task and its end to the node's recorder, in a task without a recorder.

    Args:
        control: read end of the pipe from the supervisor.
        back: write end of the pipe to the supervisor.
        program_pid: the program's process.
        leader: connected to the recorder.
        helper_pids: of the supervisor's other children, which do not belong to the program.
    """
    # Imported only after the program has started, so that the start is not delayed.
    from teho.devices.sources import visible_variables

    supervisor, recorder = LineReader(control), LineReader(leader.descriptor)
    helpers = [os.getpid(), *helper_pids]
    pids = {"pid": program_pid, "supervisor": os.getppid(), "helper_pids": helpers}
    visible = {name: os.environ[name] for name in visible_variables() if name in os.environ}
    send(leader.descriptor, rank=leader.rank, visible=visible, **pids)
    while not supervisor.closed:
        open_ = [reader.descriptor for reader in (supervisor, recorder) if not reader.closed]
        wait_for(open_)
        for message in supervisor.messages():
            if "end" in message:
                send(leader.descriptor, end=message["end"])
                _await_answer(recorder, back)
                return
        # Other messages are ignored. If the recorder dies, its supervisor reports this.
        list(recorder.messages())


def _await_answer(recorder: LineReader, back: int) -> None:
    """Wait until the node's recorder has noted the end of this task."""
    deadline_s = time.monotonic() + _WAIT_S
    while not recorder.closed and (left_s := deadline_s - time.monotonic()) > 0:
        recorder.wait(left_s)
        for answer in recorder.messages():
            if "noted" in answer:
                return
            if "sealing" in answer:
                send(back, sealing=True)
                deadline_s += _SEAL_WAIT_S


class PeerTask:
    """Another task of this node, which the node's recorder records too."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.reader = LineReader(connection.fileno())
        self.rank = 0
        self.pid = 0
        """The program's process; 0 before the task's first message."""
        self.visible: dict[str, str] = {}
        """Variables that name the GPUs it sees."""
        self.supervisor = 0
        self.helper_pids: frozenset[int] = frozenset()
        """The supervisor's children that do not belong to the program."""
        self.has_ended = False
        self.waits = False
        """Whether it waits for an answer to the message of its end."""

    def read_messages(self) -> None:
        """Read the messages of the task."""
        for message in self.reader.messages():
            if "pid" in message:
                self.rank, self.pid = message["rank"], message["pid"]
                self.visible = message["visible"]
                self.supervisor = message["supervisor"]
                self.helper_pids = frozenset(message["helper_pids"])
            elif "end" in message:
                self.has_ended = self.waits = True
        if self.reader.closed and not Path(f"/proc/{self.pid}").exists():
            # Its supervisor was killed, and its program has ended too.
            self.has_ended = True

    def report_sealing(self) -> None:
        """Report to the task, if it waits for an answer, that the recorder seals."""
        if self.waits:
            send(self._connection.fileno(), sealing=True)

    def confirm_end(self) -> None:
        """Answer the message of its end, if it waits for the answer."""
        if self.waits:
            send(self._connection.fileno(), noted=True)
            self.waits = False


class PeerTasks:
    """The other tasks of this node, in its recorder."""

    def __init__(self, leader: NodeLeader) -> None:
        """Listen for the other tasks."""
        self._listener = socket.socket(fileno=os.dup(leader.descriptor))
        self._listener.setblocking(False)
        self._expected = leader.task_count - 1
        self._deadline_s = time.monotonic() + _ARRIVAL_S
        self._own_rank = leader.rank
        self._peers: list[PeerTask] = []

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks of all tasks that are connected, including this one."""
        return tuple(sorted({self._own_rank, *(peer.rank for peer in self.arrived)}))

    @property
    def descriptors(self) -> list[int]:
        """Descriptors to wait for."""
        open_ = [peer.reader.descriptor for peer in self._peers if not peer.reader.closed]
        return [self._listener.fileno(), *open_]

    @property
    def all_here(self) -> bool:
        """Whether all other tasks are connected."""
        return len(self.arrived) >= self._expected

    @property
    def are_running(self) -> bool:
        """Whether a task still runs, or has yet to connect."""
        if any(not peer.has_ended for peer in self._peers):
            return True
        return len(self._peers) < self._expected and time.monotonic() < self._deadline_s

    @property
    def arrived(self) -> list[PeerTask]:
        """The tasks that have sent their first message."""
        return [peer for peer in self._peers if peer.pid]

    def read_messages(self) -> None:
        """Accept new connections, and read the messages of all tasks."""
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                break
            if _user_of(connection) == os.getuid():
                self._peers.append(PeerTask(connection))
            else:
                connection.close()
        for peer in self._peers:
            peer.read_messages()

    def report_sealing(self) -> None:
        """Report to the tasks that have reported their end that the recorder seals."""
        for peer in self._peers:
            peer.report_sealing()

    def confirm_ends(self) -> None:
        """Answer the tasks that have reported their end."""
        for peer in self._peers:
            peer.confirm_end()


def visible_to_any(environment: Mapping[str, str], peers: Sequence[PeerTask]) -> dict[str, str]:
    """Return an environment in which the GPUs of all tasks are visible.

    Each task may see another GPU. Without this, the recorder would read only its own task's GPU.
    """
    from teho.devices.sources import visible_variables

    found = dict(environment)
    for name in visible_variables():
        others = [peer.visible[name] for peer in peers if name in peer.visible]
        if name in environment and others:
            lists = (text.split(",") for text in (environment[name], *others) if text)
            found[name] = ",".join(dict.fromkeys(itertools.chain(*lists)))
    return found
