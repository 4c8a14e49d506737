"""Sends each sample of this node to the viewers that watch the run.

A viewer (`teho top`) writes a lease into the run's folder and renews it. The recorder looks for
leases, which is all that a run without a viewer costs. The recorder opens the connection to the
viewer, because a compute node often accepts none. If the recorder cannot reach the viewer, it
writes the newest sample into a file in the run's folder.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from teho.model.live import Hello, Lease, LiveSample, file_period_s
from teho.observe.run_changes import RunChanges, share_of
from teho.store.layout import lease_folder, now_file, replace_file

__all__ = ["Publisher"]

_RENEWED_S = 5.0
"""The recorder reads known leases again after this time, or after the period of a large job."""
_EXPIRES_S = 20.0
"""A lease that was not renewed for this long has expired: its viewer was killed. In a large job it
is longer, because the recorder reads the leases less often."""
_CONNECT_S = 2.0
_SAMPLES_PER_S = 400.0
"""Most samples that all nodes together send in a second, because the viewer has to read them."""

_EARLY_S = 0.02
"""A sample may come so much earlier than a whole number of periods after an earlier sample."""

_LARGEST_LEASE_BYTES = 1 << 16


class Publisher:
    """Sends samples while a viewer renews its lease.

    Args:
        run: the run's directory.
        node: this node's name.
        node_count: number of nodes of the recording.
        changes: of the run; None: only this object checks for them.
    """

    def __init__(
        self, run: Path, node: str, node_count: int, changes: RunChanges | None = None
    ) -> None:
        self._run = run
        self._node = node
        self._changes = changes or RunChanges(run, node_count)
        self._seen = 0
        self._check_period_s = max(_RENEWED_S, self._changes.period_s)
        self._file_period_s = file_period_s(node_count)
        # A viewer that cannot be reached gets only files, so its lease is read as seldom.
        self._slow_period_s = max(self._check_period_s, self._file_period_s)
        self._expires_s = max(_EXPIRES_S, 2 * self._slow_period_s)
        self._period_s = node_count / _SAMPLES_PER_S
        self._phase_s = share_of(node) * self._period_s
        self._turn = -1

        self._viewers: dict[str, _Viewer] = {}
        self._checked_s = self._filed_s = float("-inf")

    def watching(self, now_s: float) -> bool:
        """Return whether a viewer waits for this sample. Reads the leases if it is time.

        In a very large job, not every sample is sent.
        """
        seen, self._seen = self._seen, self._changes.count(now_s)
        # A connection shows that its viewer is alive, so its lease is not read again.
        unsure = [viewer for viewer in self._viewers.values() if not viewer.is_connected]
        is_hopeless = all(viewer.is_unreachable for viewer in unsure)
        period_s = self._slow_period_s if is_hopeless else self._check_period_s
        if seen != self._seen:
            self.read_leases(now_s)
        elif unsure and now_s - self._checked_s >= period_s:
            self.read_leases(now_s, known=True)
        if not any(viewer.is_valid(now_s) for viewer in self._viewers.values()):
            return False
        turn, self._turn = self._turn, int((now_s + self._phase_s) / self._period_s)
        return turn != self._turn or self._period_s <= 1.0

    def read_leases(self, now_s: float, *, known: bool = False) -> None:
        """Read the leases, and connect to new viewers.

        Args:
            now_s: monotonic time. The clock of the viewer's machine may be another.
            known: whether to read only the leases of known viewers, and not to list the folder.
        """
        self._checked_s = now_s
        before, self._viewers = self._viewers, {}
        for name, lease in _leases(lease_folder(self._run), list(before) if known else None):
            viewer = self._viewers[name] = (
                before.pop(name)
                if name in before
                else _Viewer(self._expires_s, max(_EXPIRES_S, 2 * self._check_period_s))
            )
            viewer.renew(lease, now_s)
            if viewer.is_valid(now_s):
                viewer.connect(lease, self._node)
            else:
                viewer.close()
        for viewer in before.values():
            viewer.close()

    def publish(self, sample: LiveSample, now_s: float) -> None:
        """Send a sample to each viewer. If a viewer is too slow, it does not get this sample."""
        line = msgspec.json.encode(sample) + b"\n"
        valid = [viewer for viewer in self._viewers.values() if viewer.is_valid(now_s)]
        # Not all(): each viewer gets the line.
        reached = [viewer.send(line, now_s) for viewer in valid]
        if not all(reached) and now_s - self._filed_s >= self._file_period_s - _EARLY_S:
            self._filed_s = now_s
            path, line = now_file(self._run, self._node), _stored(sample, line)
            with contextlib.suppress(OSError):
                try:
                    replace_file(path, line)
                except FileNotFoundError:
                    path.parent.mkdir(mode=0o700, exist_ok=True)
                    replace_file(path, line)

    def close(self) -> None:
        """Close all connections, and delete the file: the recording has its sample now."""
        for viewer in self._viewers.values():
            viewer.close()
        self._viewers = {}
        with contextlib.suppress(OSError):
            now_file(self._run, self._node).unlink(missing_ok=True)


class _Viewer:
    """One viewer, and the connection to it.

    Args:
        expires_s: time after which a lease that was not renewed has expired.
        stalls_s: time after which a connection that takes no bytes is closed.
    """

    def __init__(self, expires_s: float, stalls_s: float) -> None:
        self._expires_s = expires_s
        self._stalls_s = stalls_s
        self.is_unreachable = False
        """Whether the last attempt to connect failed."""
        self._number: int | None = None
        self._renewed_s = float("-inf")
        self._socket: socket.socket | None = None
        self._rest = b""
        self._first = b""
        """The newest sample so far, until there is a connection."""
        self._sent_s = float("inf")
        """When the connection last took some bytes."""
        self._connecting: threading.Thread | None = None
        self._is_wanted = False
        """Whether a connection that the thread opens is kept."""
        self._lock = threading.Lock()

    def renew(self, lease: Lease, now_s: float) -> None:
        """Note whether the viewer has renewed its lease since the last time."""
        if lease.number != self._number:
            self._number, self._renewed_s = lease.number, now_s

    def is_valid(self, now_s: float) -> bool:
        return self.is_connected or now_s - self._renewed_s < self._expires_s

    @property
    def is_connected(self) -> bool:
        return self._socket is not None

    @property
    def is_connecting(self) -> bool:
        return self._connecting is not None and self._connecting.is_alive()

    def connect(self, lease: Lease, node: str) -> None:
        """Connect in a thread, unless there is a connection: a firewall may not answer at all."""
        self._is_wanted = True
        if lease.addresses and not self.is_connected and not self.is_connecting:
            self._connecting = threading.Thread(
                target=self._try, args=(lease, node), name="viewer", daemon=True
            )
            with contextlib.suppress(RuntimeError):  # no more threads: the sample is a file
                self._connecting.start()

    def _try(self, lease: Lease, node: str) -> None:
        hello = msgspec.json.encode(Hello(token=lease.token, node=node)) + b"\n"
        for address in lease.addresses:
            host, _, port = address.rpartition(":")
            with contextlib.suppress(OSError, ValueError), contextlib.ExitStack() as closed:
                connection = closed.enter_context(
                    socket.create_connection((host, int(port)), timeout=_CONNECT_S)
                )
                connection.sendall(hello + self._first)
                connection.setblocking(False)
                with self._lock:
                    if self._is_wanted:
                        self._rest, self._socket = b"", connection
                        closed.pop_all()
                self.is_unreachable = False
                return
        self.is_unreachable = True

    def send(self, line: bytes, now_s: float) -> bool:
        """Send a line, or drop it if the one before is not sent yet.

        Returns:
            Whether there is a connection, or there will probably soon be one. After an attempt
            that failed, the next one will probably fail too: a firewall that drops packets lets
            each attempt wait for seconds, and no sample comes meanwhile.
        """
        if self._socket is None:
            self._first = line
            return self.is_connecting and not self.is_unreachable
        try:
            if self._rest:
                self._rest = self._rest[self._socket.send(self._rest) :]
            if not self._rest:
                self._rest = line[self._socket.send(line) :]
            self._sent_s = now_s
        except BlockingIOError:
            if now_s - self._sent_s > self._stalls_s:
                self.close()  # its machine is gone
            return True
        except OSError:
            self.close()
            return False
        return True

    def close(self) -> None:
        with self._lock:
            self._is_wanted = False
            connection, self._socket = self._socket, None
        if connection is not None:
            connection.close()


def _stored(sample: LiveSample, line: bytes) -> bytes:
    """Return the line without the ids of other users: the file stays if the recorder is killed.

    Args:
        sample: the sample.
        line: the sample as it is sent over a connection.
    """
    if not any(isinstance(one.owner, int) for one in sample.processes):
        return line
    processes = [
        msgspec.structs.replace(one, owner="other") if isinstance(one.owner, int) else one
        for one in sample.processes
    ]
    return msgspec.json.encode(msgspec.structs.replace(sample, processes=processes)) + b"\n"


def _leases(folder: Path, names: Sequence[str] | None = None) -> Iterator[tuple[str, Lease]]:
    """Yield the name and the content of each lease of this user.

    Args:
        folder: the folder of the leases.
        names: those that are read; None: all of the folder.
    """
    if names is None:
        try:
            names = os.listdir(folder)  # noqa: PTH208 - one system call less for each name
        except OSError:
            return
    for name in names:
        if name.startswith(".") or not name.endswith(".json"):
            continue
        with contextlib.suppress(OSError, msgspec.MsgspecError), (folder / name).open("rb") as file:
            # Samples go only to the user who owns the recording.
            if os.fstat(file.fileno()).st_uid == os.getuid():
                content = file.read(_LARGEST_LEASE_BYTES)
                yield name, msgspec.json.decode(content, type=Lease)
