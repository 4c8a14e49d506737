"""Watches a run: renews a lease, and receives the samples of all its nodes."""

from __future__ import annotations

import contextlib
import hmac
import os
import resource
import secrets
import selectors
import socket
import time
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from teho.model.live import (
    SILENT_S,
    Hello,
    Lease,
    LiveSample,
    ProcessNow,
    Way,
    file_period_s,
)
from teho.model.run import Node
from teho.observe.file_ages import FileAges, rows_written_s
from teho.observe.run_changes import announce
from teho.process.json_lines import LineReader, LineTooLongError
from teho.store.layout import lease_folder, now_file, replace_file, safe_name
from teho.store.read import samples_of_node

__all__ = ["Received", "Viewer"]

_RENEW_S = 5.0
_HELLO_S = 5.0
"""A connection that does not send its token in this time is closed."""
_LONGEST_BYTES = 4 << 20
_OTHER_FILES = 128
"""Open files of this process besides the connections."""
_HOSTS_TRIED = 3
"""To find the addresses of this machine that the nodes may reach."""
_LONGEST_S = 0.2
"""Longest time for reading what has come."""
_FILE_S, _FIRST_FILE_S = 0.4, 0.2
"""Least time between two readings of files, and the same until the first sample has come. The
screen looks for samples every 0.5 s: with a longer time, it would not read files at each look."""
_NODES_PER_S = 400.0
"""In a very large job, the files are read less often, as the recorders send less often."""
_ROUNDED_S = 0.05


class Received(NamedTuple):
    """The newest sample of a node."""

    sample: LiveSample
    at_s: float
    """Monotonic time at which it was received; from a file or rows: at which it was written."""
    before: LiveSample | None
    """The sample before it: the increase of a counter needs two."""
    way: Way
    processes: Sequence[ProcessNow] = ()
    """The newest known processes: rows have none."""


class Viewer:
    """Receives the samples of a run until it is closed.

    Args:
        directory: the recording.
        nodes: its nodes.
        expected: hosts of its job that have not begun to record. Their recorders find the lease
            when they begin.

    Attributes:
        newest: node -> its newest sample; a node that never sent one is not there.
        problem: why no recorder can know of this viewer; empty if all can.
    """

    def __init__(
        self, directory: Path, nodes: Sequence[Node], expected: Sequence[str] = ()
    ) -> None:
        self.newest: dict[str, Received] = {}
        self.problem = ""
        self._directory = directory
        self._nodes: dict[str, Node] = {}
        self._expected = {_short(host): host for host in expected}
        self._token = secrets.token_hex(16)
        self._number = 0
        self._renewed_s = self._filed_s = float("-inf")
        self._selector = selectors.DefaultSelector()
        self._listener: socket.socket | None = None
        self._connected: dict[str, _Connection] = {}
        self._open: set[_Connection] = set()
        self._processes: dict[str, Sequence[ProcessNow]] = {}
        """Node -> its newest known processes, also if the sample that had them is dropped."""
        self._read_s: dict[str, float] = {}
        self._ends_s: Mapping[str, float] = {}
        self._ages = FileAges()
        self._files: dict[str, tuple[int, float]] = {}
        """Name of a node's file -> its inode, and the monotonic time at which it was read."""
        host = safe_name(os.uname().nodename) or "viewer"
        self._lease = lease_folder(directory) / f"{host}-{os.getpid()}-{self._token[:8]}.json"
        self._remove_dead(host)
        with contextlib.suppress(OSError):
            self._listener = socket.create_server(("", 0), backlog=1024)
            self._listener.setblocking(False)
            self._selector.register(self._listener, selectors.EVENT_READ)
        self._addresses: tuple[str, ...] = ()
        self.add(nodes)
        if self._expected and self._listener and not self._addresses:
            self._addresses = tuple(self._own_addresses())
        self._renew()

    def add(self, nodes: Sequence[Node]) -> None:
        """Watch these nodes too: the recorders of a job do not all start at the same moment."""
        new = [node for node in nodes if node.name not in self._nodes]
        for node in new:
            self._nodes[node.name] = node
            self._read_s[node.name] = self._filed_s = float("-inf")
            self._expected.pop(_short(node.name), None)
        _allow_files(2 * self._most_nodes + _OTHER_FILES)
        if new and self._listener and len(self._addresses) < _HOSTS_TRIED:
            self._addresses = tuple(self._own_addresses())

    @property
    def _most_nodes(self) -> int:
        return len(self._nodes) + len(self._expected)

    def end(self, ends_s: Mapping[str, float]) -> None:
        """Note the end of the run: from now on, only samples from before it count.

        The recorder takes its last sample after the program has ended, so this sample lacks the
        values of the program's processes.

        Args:
            ends_s: node -> end of the run, in seconds after its start by the clock of the node.
        """
        self._ends_s = ends_s
        for name, received in list(self.newest.items()):
            if self._is_after_end(received.sample):
                del self.newest[name]
                self._read_s[name] = self._filed_s = float("-inf")

    def _is_after_end(self, sample: LiveSample) -> bool:
        end_s, node = self._ends_s.get(sample.node), self._nodes.get(sample.node)
        return end_s is not None and node is not None and sample.is_after(end_s, node.period_s)

    def poll(self, wait_s: float, *, reads_all: bool = True) -> None:
        """Receive what has come, and wait for at most this time if there is nothing.

        Args:
            wait_s: the time.
            reads_all: whether the recording of every node is read that has no connection yet; if
                not, a call reads some of them.
        """
        now_s = time.monotonic()
        if now_s - self._renewed_s >= _RENEW_S:
            self._renew()
        deadline_s = now_s + wait_s
        while True:
            ready = self._selector.select(max(0.0, deadline_s - time.monotonic()))
            for key, _ in ready:
                if key.fileobj is self._listener:
                    self._accept()
                else:
                    self._receive(key.data)
            # Without waiting, everything that has come is taken, but not for ever.
            now_s = time.monotonic()
            if now_s >= deadline_s and (not ready or now_s >= deadline_s + _LONGEST_S):
                break
        self._close_silent()
        pause_s = max(_FILE_S, len(self._nodes) / _NODES_PER_S) if self.newest else _FIRST_FILE_S
        if time.monotonic() - self._filed_s >= pause_s:
            self._read_files(float("inf") if reads_all else time.monotonic() + _LONGEST_S)

    def close(self) -> None:
        """Give the lease back, and close all connections."""
        with contextlib.suppress(OSError):
            self._lease.unlink(missing_ok=True)
        for connection in list(self._open):
            self._drop(connection)
        if self._listener is not None:
            self._listener.close()
        self._selector.close()

    def _renew(self) -> None:
        self._renewed_s = time.monotonic()
        self._number += 1
        lease = Lease(number=self._number, addresses=self._addresses, token=self._token)
        try:
            replace_file(self._lease, msgspec.json.encode(lease))
            self._ages.compare(self._lease)
            if self._number == 1:
                announce(self._directory)
            self.problem = ""
        except OSError as error:
            self.problem = f"{self._lease.parent}: {error.strerror}"

    def _remove_dead(self, host: str) -> None:
        """Delete the leases of viewers on this machine that were killed."""
        for path in self._lease.parent.glob(f"{host}-*-*.json"):
            pid = path.stem.rsplit("-", 2)[1]
            if pid.isdigit() and not Path(f"/proc/{pid}").exists():
                with contextlib.suppress(OSError):
                    path.unlink()

    def _own_addresses(self) -> list[str]:
        """Return where the nodes may reach this viewer: the address on the route to them."""
        port = self._listener.getsockname()[1] if self._listener else 0
        found: dict[str, None] = {}
        for node in islice((*self._nodes, *self._expected.values()), _HOSTS_TRIED):
            with contextlib.suppress(OSError), socket.socket(type=socket.SOCK_DGRAM) as probe:
                probe.connect((node, 9))  # sends nothing: the kernel only chooses the route
                found[probe.getsockname()[0]] = None
        return [f"{host}:{port}" for host in found]

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # until no connection waits
            while self._listener is not None:
                accepted, _ = self._listener.accept()
                if len(self._open) > 2 * self._most_nodes + 16:
                    accepted.close()
                    continue
                connection = _Connection(accepted)
                self._open.add(connection)
                self._selector.register(accepted, selectors.EVENT_READ, connection)

    def _receive(self, connection: _Connection) -> None:
        try:
            connection.reader.read()
        except (LineTooLongError, ValueError, OSError):
            self._drop(connection)
            return
        for message in connection.reader.take():
            if not connection.node:
                connection.node = self._named(message)
                if not connection.node:
                    self._drop(connection)
                    return
                self._connected[connection.node] = connection
                continue
            with contextlib.suppress(msgspec.MsgspecError):
                sample = msgspec.convert(message, LiveSample)
                if sample.node == connection.node:
                    self._keep(sample, "connection")
        if connection.reader.closed:
            self._drop(connection)

    def _named(self, message: dict[str, Any]) -> str:
        """Return the node of a first line; empty if it has not our token."""
        try:
            hello = msgspec.convert(message, Hello)
        except msgspec.ValidationError:
            return ""
        is_ours = hmac.compare_digest(hello.token.encode(), self._token.encode())
        is_known = hello.node in self._nodes or _short(hello.node) in self._expected
        return hello.node if is_ours and is_known else ""

    def _keep(self, sample: LiveSample, way: Way, age_s: float = 0.0) -> None:
        known = self.newest.get(sample.node)
        # A row has a rounded time, and less than the sample that came over a connection.
        newer_by_s = _ROUNDED_S if way == "recording" else 0.0
        if known is not None and sample.elapsed_s <= known.sample.elapsed_s + newer_by_s:
            return
        if known is not None and self._is_after_end(sample):
            return
        if sample.processes:
            self._processes[sample.node] = sample.processes
        self.newest[sample.node] = Received(
            sample,
            time.monotonic() - age_s,
            known.sample if known else None,
            way,
            self._processes.get(sample.node, ()),
        )

    def _read_recording(self, node: Node) -> None:
        place = f"rows {node.name}"
        found = samples_of_node(self._directory, node.name, 3 if node.name in self._ends_s else 2)
        if found:
            written_s = rows_written_s(self._directory, node.name)
            newest_s = found[-1].elapsed_s
            age_s = self._ages.age_s(place, written_s)
            for sample in found:
                self._keep(sample, "recording", age_s + newest_s - sample.elapsed_s)
        self._ages.note_read(place)

    def _drop(self, connection: _Connection) -> None:
        self._open.discard(connection)
        if self._connected.get(connection.node) is connection:
            del self._connected[connection.node]
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(connection.socket)
        connection.socket.close()

    def _close_silent(self) -> None:
        now_s = time.monotonic()
        for connection in [one for one in self._open if not one.node]:
            if now_s - connection.opened_s > _HELLO_S:
                self._drop(connection)

    def _read_files(self, until_s: float) -> None:
        """Read the newest samples of the nodes that have no connection.

        Args:
            until_s: monotonic time from which no other recording is read.
        """
        now_s = self._filed_s = time.monotonic()
        away = [node for name, node in self._nodes.items() if name not in self._connected]
        for node in sorted(away, key=lambda one: self._read_s[one.name]):
            known = self.newest.get(node.name)
            newest_s = max(known.at_s if known else float("-inf"), self._read_s[node.name])
            if now_s - newest_s <= (self._pause_s(known.way) if known else _RENEW_S):
                continue
            if time.monotonic() > until_s:
                self._filed_s = float("-inf")  # the next call continues
                break
            self._read_s[node.name] = now_s
            self._read_recording(node)
        names = self._replaced_files(now_s) if away else frozenset()
        for path in (now_file(self._directory, node.name) for node in away):
            if path.name in names:
                with contextlib.suppress(OSError, msgspec.MsgspecError), path.open("rb") as file:
                    # NFS asks its server for the time of a file only when the file is opened.
                    written_s = os.fstat(file.fileno()).st_mtime
                    sample = msgspec.json.decode(file.read(), type=LiveSample)
                    self._keep(sample, "file", self._ages.age_s(str(path), written_s))
            self._ages.note_read(str(path))

    def _pause_s(self, way: Way) -> float:
        """Return the age of a sample from which on the rows of its node are read again."""
        return max(SILENT_S, file_period_s(len(self._nodes)) if way == "file" else 0.0)

    def _replaced_files(self, now_s: float) -> frozenset[str]:
        """Return the names of the nodes' files that were replaced since they were last read.

        Only the folder is listed, which gives the number of each file (inode). A file system may
        give the number of a replaced file to the next one, so each file is read now and then.
        """
        again_s = 2 * file_period_s(len(self._nodes))
        names = set()
        folder = now_file(self._directory, "").parent
        with contextlib.suppress(OSError), os.scandir(folder) as found:
            for entry in found:
                if entry.name.startswith("."):
                    continue  # a recorder writes it just now
                inode, (known, read_s) = entry.inode(), self._files.get(entry.name, (-1, now_s))
                if inode != known or now_s - read_s >= again_s:
                    self._files[entry.name] = inode, now_s
                    names.add(entry.name)
        return frozenset(names)


def _short(host: str) -> str:
    """Return a host's name without its domain, which is not always given."""
    return host.partition(".")[0]


def _allow_files(wanted: int) -> None:
    """Raise this process's limit of open files: each node of a large job needs a connection."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, limit), hard))


def _parsed(line: bytes) -> dict[str, Any]:
    """Read a line; msgspec is faster than the standard library.

    Raises:
        ValueError: it is not a JSON object.
    """
    return msgspec.json.decode(line, type=dict[str, Any])


class _Connection:
    """A connection that a recorder opened; without a node until its token was right."""

    def __init__(self, accepted: socket.socket) -> None:
        self.socket = accepted
        self.reader = LineReader(accepted.fileno(), _parsed, longest_bytes=_LONGEST_BYTES)
        self.opened_s = time.monotonic()
        self.node = ""
