"""The tasks of one node choose a leader: the recorder of this task serves the whole node.

They use a socket in Linux's abstract namespace, named after the user and the step. The task that
binds it first is the leader; the others connect to its recorder. The kernel decides, and nothing
is left behind.
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

__all__ = ["NodeLeader", "PeerTask", "PeerTasks", "stand_by", "visible_to_any"]

_TRIES = 20
_BACKLOG = 4096
# Tasks of one node start within a second or two; a node that swaps takes longer.
_ARRIVAL_S = 30.0
_WAIT_S = 8.0
"""For the recorder's last word: a bit less than the supervisor waits for us."""


class NodeLeader:
    """This task's place on its node."""

    def __init__(self, key: str, rank: int, task_count: int) -> None:
        """Become the leader, or connect to it.

        Args:
            key: of the step.
            rank: of this task.
            task_count: tasks of the step on this node.

        Raises:
            OSError: sockets do not work here.
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
                """Whether this task's recorder is the node's."""
                return
            with contextlib.suppress(OSError):
                self._socket.connect(name)
                if _user_of(self._socket) == os.getuid():
                    self.records = False
                    return
            # Its holder has just left; or another user holds it, who then keeps it.
            self._socket.close()
            time.sleep(0.05)
        raise OSError(0, "another user's process holds the socket of this step's recorder")

    @property
    def descriptor(self) -> int:
        """The listening socket, or the connection to the recorder."""
        return self._socket.fileno()

    def leave(self) -> None:
        """In the supervisor: let the recorder alone hold it."""
        self._socket.close()


def _user_of(connection: socket.socket) -> int:
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int(struct.unpack("3i", credentials)[1])


def stand_by(control: int, program_pid: int, leader: NodeLeader, apart: Sequence[int] = ()) -> None:
    """In a task that does not record: tell the node's recorder of this task, and of its end.

    Args:
        control: read end of the pipe from the supervisor.
        program_pid: the program's own process.
        leader: connected to the recorder.
        apart: the supervisor's other children that are none of the program's.
    """
    # Not before the program has started: it is not a part of the supervisor.
    from teho.devices.sources import visible_variables

    supervisor, recorder = LineReader(control), LineReader(leader.descriptor)
    pids = {"pid": program_pid, "supervisor": os.getppid(), "apart": [os.getpid(), *apart]}
    visible = {name: os.environ[name] for name in visible_variables() if name in os.environ}
    send(leader.descriptor, rank=leader.rank, visible=visible, **pids)
    while not supervisor.closed:
        open_ = [reader.descriptor for reader in (supervisor, recorder) if not reader.closed]
        wait_for(open_)
        for message in supervisor.messages():
            if "end" in message:
                send(leader.descriptor, end=message["end"])
                deadline = time.monotonic() + _WAIT_S
                while not recorder.closed and (left_s := deadline - time.monotonic()) > 0:
                    recorder.wait(left_s)
                    if any("noted" in word for word in recorder.messages()):
                        break
                return
        # Nothing else is expected of the recorder; where it dies, its own supervisor tells.
        list(recorder.messages())


class PeerTask:
    """A task whose rows this node's recorder writes along with its own."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.reader = LineReader(connection.fileno())
        self.rank = 0
        self.pid = 0
        """The program's own process; 0: it has not introduced itself yet."""
        self.visible: dict[str, str] = {}
        """Variables that say which GPUs it sees."""
        self.supervisor = 0
        self.apart: frozenset[int] = frozenset()
        """The supervisor's children that are none of the program's."""
        self.has_ended = False
        self.waits = False
        """Whether it is waiting for a word that its end was noted."""

    def hear(self) -> None:
        """Take in what it says."""
        for message in self.reader.messages():
            if "pid" in message:
                self.rank, self.pid = message["rank"], message["pid"]
                self.visible = message["visible"]
                self.supervisor, self.apart = message["supervisor"], frozenset(message["apart"])
            elif "end" in message:
                self.has_ended = self.waits = True
        if self.reader.closed and not Path(f"/proc/{self.pid}").exists():
            # Its supervisor was killed, and its program is gone too.
            self.has_ended = True

    def note(self) -> None:
        """Let it go."""
        if self.waits:
            send(self._connection.fileno(), noted=True)
            self.waits = False


class PeerTasks:
    """The other tasks of this node, as its recorder knows them."""

    def __init__(self, leader: NodeLeader) -> None:
        """Begin to listen."""
        self._listener = socket.socket(fileno=os.dup(leader.descriptor))
        self._listener.setblocking(False)
        self._expected = leader.task_count - 1
        self._deadline_s = time.monotonic() + _ARRIVAL_S
        self._own_rank = leader.rank
        self._peers: list[PeerTask] = []

    @property
    def ranks(self) -> tuple[int, ...]:
        """Ranks of the tasks that came forward, this one included."""
        return tuple(sorted({self._own_rank, *(peer.rank for peer in self.arrived)}))

    @property
    def descriptors(self) -> list[int]:
        """What may have something to read."""
        open_ = [peer.reader.descriptor for peer in self._peers if not peer.reader.closed]
        return [self._listener.fileno(), *open_]

    @property
    def all_here(self) -> bool:
        """Whether every other task has come forward."""
        return len(self.arrived) >= self._expected

    @property
    def are_running(self) -> bool:
        """Whether a task still runs, or is still to come."""
        if any(not peer.has_ended for peer in self._peers):
            return True
        return len(self._peers) < self._expected and time.monotonic() < self._deadline_s

    @property
    def arrived(self) -> list[PeerTask]:
        """Those that have come forward."""
        return [peer for peer in self._peers if peer.pid]

    def hear(self) -> None:
        """Take in what they say."""
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
            peer.hear()

    def note_ends(self) -> None:
        """Let go of those whose end is known."""
        for peer in self._peers:
            peer.note()


def visible_to_any(environment: Mapping[str, str], peers: Sequence[PeerTask]) -> dict[str, str]:
    """Return an environment in which the GPUs of all tasks are visible.

    If each task sees a GPU of its own, a recorder would else know of one alone.
    """
    from teho.devices.sources import visible_variables

    found = dict(environment)
    for name in visible_variables():
        told = [peer.visible[name] for peer in peers if name in peer.visible]
        if name in environment and told:
            lists = (text.split(",") for text in (environment[name], *told) if text)
            found[name] = ",".join(dict.fromkeys(itertools.chain(*lists)))
    return found
