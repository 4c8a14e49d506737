"""Who is connected to rank 0: the ranks, and whoever else found the port."""

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
"""Told first by both sides, so that neither takes another program for its like."""

_GOODBYE_S = 2.0


class RendezvousError(Exception):
    """Rank 0 cannot listen where the others will look for it."""


def open_rendezvous(task: CheckTask) -> socket.socket:
    """Return the socket that the ranks come to.

    Raises:
        RendezvousError: the port is taken, or MASTER_ADDR is not this machine.
    """
    try:
        found = socket.getaddrinfo(task.address, 0, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:  # the latter: a name that no host can have
        why = getattr(error, "strerror", None) or "not a host name"
        raise RendezvousError(
            f"{task.name}: MASTER_ADDR {task.address} does not resolve ({why}). "
            "Next: set it to a name or address of this node that every node resolves"
        ) from None
    if not any(_is_mine(family, address) for family, _, _, _, address in found):
        raise RendezvousError(
            f"{task.name}: MASTER_ADDR {task.address} is another machine. "
            "Next: set it to the node of rank 0"
        )
    try:
        return listen(task.port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise RendezvousError(
                f"{task.name}: port {task.port} is in use by another program. "
                "Next: set MASTER_PORT to a free one, the same on all ranks"
            ) from None
        raise RendezvousError(
            f"{task.name}: cannot listen on port {task.port}: {error.strerror}. "
            "Next: set MASTER_PORT to a number above 1023"
        ) from None


class Peer:
    """Whoever connected; a rank once it has said who it is."""

    def __init__(self, connection: socket.socket, address: str) -> None:
        """Take over a connection from an address."""
        self.connection = connection
        self.wire = Wire(connection.fileno(), connection.fileno())
        self.address = address
        self.hello: dict[str, Any] = {}
        """What it said of itself; empty: nothing yet."""

    def tell(self, about: str, **data: Any) -> None:
        """Send a message; that it is gone is told by hearing from it."""
        try:
            self.wire.send(about, **data)
        except OSError:
            return


class Peers:
    """All who are connected."""

    def __init__(self, server: socket.socket, task: CheckTask) -> None:
        """Let in who comes to a socket from `open_rendezvous`, which `task` opened."""
        self.strangers: list[str] = []
        """A sentence for each that was not a rank of this step."""
        self._task = task
        self._server = server
        self._server.setblocking(False)  # who connects may be gone before it is let in
        self._selector = selectors.DefaultSelector()
        self._selector.register(server, selectors.EVENT_READ)
        self._there: set[Peer] = set()

    def hear(self, end_s: float) -> Iterator[tuple[Peer, dict[str, Any] | None]]:
        """Wait until something comes, and yield it: a peer's message; None when it is gone.

        Args:
            end_s: when to stop waiting, by the monotonic clock.
        """
        for key, _ in self._selector.select(max(0.0, end_s - time.monotonic())):
            if key.fileobj is self._server:
                self._let_in()
                continue
            peer = key.data
            try:
                messages = peer.wire.take()
            except ForeignError as error:
                self.turn_away(peer, str(error))
                continue
            for message in messages:
                if peer in self._there:
                    yield peer, message
            if peer.wire.closed and peer in self._there:
                self._forget(peer)
                yield peer, None

    def introduce(self, peer: Peer, message: dict[str, Any]) -> bool:
        """Return whether a first message is a rank's hello; who says something else must go."""
        if message["about"] != "hello" or message.get("magic") != MAGIC:
            self.turn_away(peer, ascii(message["about"][:40]))
            return False
        peer.hello = message
        return True

    def turn_away(self, peer: Peer, said: str) -> None:
        """Close the connection of one that is not a rank of this step."""
        self._forget(peer)
        self.strangers.append(
            f"a program that is not a rank of this step connected from {peer.address} and said "
            f"{said}"
        )

    def dismiss(self) -> None:
        """Let all go, and wait until they went: closing at once could lose the last word."""
        self._selector.unregister(self._server)
        self._server.close()
        for peer in self._there:
            peer.tell("stop")
        end_s = time.monotonic() + _GOODBYE_S
        while any(peer.hello for peer in self._there) and time.monotonic() < end_s:
            for _ in self.hear(end_s):
                continue
        for peer in list(self._there):
            self._forget(peer)
        self._selector.close()

    def _let_in(self) -> None:
        try:
            connection, address = self._server.accept()
        except OSError:
            return
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer = Peer(connection, _plain(address[0]))
        self._there.add(peer)
        self._selector.register(connection, selectors.EVENT_READ, peer)
        peer.tell("welcome", magic=MAGIC, step=self._task.step)

    def _forget(self, peer: Peer) -> None:
        self._there.remove(peer)
        self._selector.unregister(peer.connection)
        peer.connection.close()


def _is_mine(family: int, address: Any) -> bool:
    """Return whether an address is one of this machine's: only then can it be bound to."""
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        try:
            probe.bind(address)
        except OSError:
            return False
        return True


def _plain(address: str) -> str:
    """Return an IPv4 address that came in through IPv6 as itself."""
    return address.rpartition("::ffff:")[2]
