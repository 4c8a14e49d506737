"""Starts the server of the portal on a Unix socket, or on a port with a link."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import socket
import stat
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from types import FrameType

import uvicorn

from teho.errors import InputError
from teho.show.portal.app import Portal
from teho.show.portal.guard import LONGEST_HEADERS, Guard, Link

__all__ = [
    "host_name",
    "listen_on_port",
    "listen_on_socket",
    "serve",
    "socket_path",
    "user_at_host",
]

_LONGEST_PATH = 100
"""The kernel allows 107 bytes for the path of a Unix socket."""
_CONNECTIONS = 80
_NAME = "teho-portal.sock"


def socket_path() -> Path:
    """Return the path of the default socket, in a folder that only this user can enter.

    Raises:
        InputError: there is no such folder.
    """
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    if given and _is_private(Path(given)):
        return Path(given) / _NAME
    folder = Path(tempfile.gettempdir()) / f"teho-{os.geteuid()}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if not _is_private(folder):
        raise InputError(
            f"{folder} belongs to another user, or other users can enter it",
            "a folder that only you can enter",
            "give another path with --socket",
        )
    return folder / _NAME


def _is_private(folder: Path) -> bool:
    try:
        status = folder.lstat()
    except OSError:
        return False
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return is_own and not status.st_mode & 0o077


def listen_on_socket(path: Path) -> socket.socket:
    """Listen on a Unix socket that only this user can connect to.

    A socket that a killed portal left is replaced.

    Raises:
        InputError: another portal uses it, or it cannot be made.
    """
    if len(os.fsencode(path)) > _LONGEST_PATH:
        raise InputError(f"{path} is too long", f"a path of at most {_LONGEST_PATH} bytes")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_left(path)
        # The mode counts from the first moment: a chmod afterwards would leave a gap.
        before = os.umask(0o177)
        try:
            listener.bind(str(path))
        finally:
            os.umask(before)
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise InputError(f"{path}: {error.strerror}", "a path in a folder of yours") from error
    except InputError:
        listener.close()
        raise
    return listener


def _remove_left(path: Path) -> None:
    """Delete the socket of a portal that was killed."""
    if not path.is_socket():
        return
    if _answers(path):
        raise InputError(
            f"another portal uses {path}",
            "a path that is not in use",
            "use the portal that runs, or give another path with --socket",
        )
    path.unlink()


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def listen_on_port(address: str, port: int) -> socket.socket:
    """Listen on a TCP port.

    Args:
        address: of the interface, such as `127.0.0.1`.
        port: its number; 0: any free port.

    Raises:
        InputError: the port cannot be used.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(128)
    except (OSError, OverflowError) as error:
        listener.close()
        raise InputError(
            f"port {port} on {address}: {getattr(error, 'strerror', error)}",
            "a free port, or 0 for any free port",
        ) from error
    return listener


class _Server(uvicorn.Server):
    """Ends the streams of events first: they would go on for an hour."""

    def __init__(self, config: uvicorn.Config, portal: Portal) -> None:
        super().__init__(config)
        self._portal = portal

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._portal.end_streams()
        super().handle_exit(sig, frame)


def serve(
    portal: Portal, listener: socket.socket, link: Link | None, hosts: Collection[str]
) -> None:
    """Answer requests until Ctrl-C, SIGTERM or SIGHUP.

    Args:
        portal: the pages.
        listener: where the browser connects.
        link: the secret; None for a Unix socket.
        hosts: names in the header `Host` that are allowed besides the loopback's.
    """
    config = uvicorn.Config(
        Guard(portal.application, link, hosts),
        http="h11",
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        # A log of the requests would have the token.
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_CONNECTIONS,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=LONGEST_HEADERS,
    )
    server = _Server(config, portal)
    # uvicorn raises the signal again when it has ended; a terminal that is closed sends SIGHUP.
    signal.signal(signal.SIGTERM, _exit)
    signal.signal(signal.SIGHUP, server.handle_exit)
    with _leaving(listener, portal):
        server.run(sockets=[listener])


def _exit(number: int, _: object) -> None:
    raise SystemExit(128 + number)


@contextlib.contextmanager
def _leaving(listener: socket.socket, portal: Portal) -> Iterator[None]:
    path = listener.getsockname() if listener.family == socket.AF_UNIX else ""
    try:
        yield
    finally:
        portal.close()
        listener.close()
        if path:
            with contextlib.suppress(OSError):
                Path(path).unlink()


def user_at_host() -> str:
    """Return `USER@HOST` of this machine, for a command of ssh."""
    return f"{pwd.getpwuid(os.geteuid()).pw_name}@{host_name()}"


def host_name() -> str:
    """Return the name of this machine, with its domain if it is known."""
    return socket.getfqdn()
