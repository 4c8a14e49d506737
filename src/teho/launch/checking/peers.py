"""Connections to rank 0: from the ranks, and from other programs that found the port."""

from __future__ import annotations

import errno
import selectors
import socket
import time
from collections.abc import Iterator
from typing import Any

from teho.launch.checking.task import CheckTask
from teho.launch.checking.wire import ForeignError, Wire, listen

__all__ = ["MAGIC", "Peer", "Peers", "RendezvousError", "open_rendezvous"]

MAGIC = "teho launch --check, 1"
"""Both sides send this first, to recognise other programs."""

_GOODBYE_S = 2.0


class RendezvousError(Exception):
    """Rank 0 cannot listen at the address of the rendezvous."""


def open_rendezvous(task: CheckTask) -> socket.socket:
    """Return the socket to which the ranks connect.

    Raises:
        RendezvousError: the port is in use, or MASTER_ADDR is not this machine.
    """
    try:
        found = socket.getaddrinfo(task.address, 0, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:  # UnicodeError: not a possible host name
        why = getattr(error, "strerror", None) or "not a host name"
        raise RendezvousError(
            f"{task.name}: MASTER_ADDR {task.address} does not resolve ({why}). "
            "Next: set MASTER_ADDR to a name or address of this node that all nodes can resolve"
        ) from None
    if not any(_is_mine(family, address) for family, _, _, _, address in found):
        raise RendezvousError(
            f"{task.name}: MASTER_ADDR {task.address} is not an address of rank 0's machine. "
            "Next: set MASTER_ADDR to the node of rank 0"
        )
    try:
        return listen(task.port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise RendezvousError(
                f"{task.name}: port {task.port} is in use by another program. "
                "Next: set MASTER_PORT to a free port, the same on all ranks"
            ) from None
        raise RendezvousError(
            f"{task.name}: cannot listen on port {task.port}: {error.strerror}. "
            "Next: set MASTER_PORT to a number above 1023"
        ) from None


class Peer:
    """One connection; a rank after its first message."""

    def __init__(self, connection: socket.socket, address: str) -> None:
        """Use a connection from an address."""
        self.connection = connection
        self.wire = Wire(connection.fileno(), connection.fileno())
        self.address = address
        self.hello: dict[str, Any] = {}
        """Its first message; empty: none yet."""

    def send(self, about: str, **data: Any) -> None:
        """Send a message. `Peers.receive` reports a broken connection."""
        try:
            self.wire.send(about, **data)
        except OSError:
            return


class Peers:
    """All connections to rank 0."""

    def __init__(self, server: socket.socket, task: CheckTask) -> None:
        """Accept connections to a socket from `open_rendezvous`, which `task` opened."""
        self.rejected: list[str] = []
        """A sentence for each program that was not a rank of this step."""
        self._task = task
        self._server = server
        self._server.setblocking(False)  # a connection may close before it is accepted
        self._selector = selectors.DefaultSelector()
        self._selector.register(server, selectors.EVENT_READ)
        self._connected: set[Peer] = set()

    def receive(self, end_s: float) -> Iterator[tuple[Peer, dict[str, Any] | None]]:
        """Wait for messages and yield each with its peer; None: the connection closed.

        Args:
            end_s: when to stop waiting, by the monotonic clock.
        """
        for key, _ in self._selector.select(max(0.0, end_s - time.monotonic())):
            if key.fileobj is self._server:
                self._accept()
                continue
            peer = key.data
            try:
                messages = peer.wire.take()
            except ForeignError as error:
                self.reject(peer, str(error))
                continue
            for message in messages:
                if peer in self._connected:
                    yield peer, message
            if peer.wire.closed and peer in self._connected:
                self._forget(peer)
                yield peer, None

    def accept_hello(self, peer: Peer, message: dict[str, Any]) -> bool:
        """Return whether a first message is a rank's hello; reject any other program."""
        if message["about"] != "hello" or message.get("magic") != MAGIC:
            self.reject(peer, ascii(message["about"][:40]))
            return False
        peer.hello = message
        return True

    def reject(self, peer: Peer, sent: str) -> None:
        """Close the connection of a program that is not a rank of this step."""
        self._forget(peer)
        self.rejected.append(
            f"another program, which is not a rank of this step, connected from {peer.address}; it "
            f"sent {sent}"
        )

    def stop_all(self) -> None:
        """Stop all ranks, and wait until they close: closing at once could lose a message."""
        self._selector.unregister(self._server)
        self._server.close()
        for peer in self._connected:
            peer.send("stop")
        end_s = time.monotonic() + _GOODBYE_S
        while any(peer.hello for peer in self._connected) and time.monotonic() < end_s:
            for _ in self.receive(end_s):
                continue
        for peer in list(self._connected):
            self._forget(peer)
        self._selector.close()

    def _accept(self) -> None:
        try:
            connection, address = self._server.accept()
        except OSError:
            return
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer = Peer(connection, _plain(address[0]))
        self._connected.add(peer)
        self._selector.register(connection, selectors.EVENT_READ, peer)
        peer.send("welcome", magic=MAGIC, step=self._task.step)

    def _forget(self, peer: Peer) -> None:
        self._connected.remove(peer)
        self._selector.unregister(peer.connection)
        peer.connection.close()


def _is_mine(family: int, address: Any) -> bool:
    """Return whether an address belongs to this machine: only then can a socket bind to it."""
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(address)
        except OSError:
            return False
        return True


def _plain(address: str) -> str:
    """Return the IPv4 form of an address that arrived through IPv6."""
    return address.rpartition("::ffff:")[2]
