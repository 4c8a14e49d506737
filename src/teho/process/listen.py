"""Listens on a Unix socket of this user, or on a port; the name of this machine for ssh."""

from __future__ import annotations

import os
import pwd
import socket
from pathlib import Path

from teho.errors import InputError
from teho.process.private_folder import is_private, private_folder

__all__ = [
    "host_name",
    "listen_on_port",
    "listen_on_socket",
    "own_names",
    "socket_path",
    "user_at_host",
]

_LONGEST_PATH = 100
"""The kernel allows 107 bytes for the path of a Unix socket."""


def socket_path(name: str) -> Path:
    """Return the path of a socket, in a folder that only this user can enter.

    Args:
        name: name of the socket.

    Raises:
        InputError: there is no such folder.
    """
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    if given and is_private(Path(given)):
        return Path(given) / name
    folder = private_folder()
    if not is_private(folder):
        raise InputError(
            f"{folder} belongs to another user, or other users can enter it",
            "a folder that only you can enter",
            "give another path with --socket",
        )
    return folder / name


def listen_on_socket(path: Path) -> socket.socket:
    """Listen on a Unix socket that only this user can connect to.

    A socket that a killed process left is replaced.

    Raises:
        InputError: another process uses it, or it cannot be made.
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
    """Delete the socket of a process that was killed."""
    if not path.is_socket():
        if os.path.lexists(path):
            raise InputError(
                f"{path} is a {'folder' if path.is_dir() else 'file'}, not a socket",
                "a path that does not exist yet",
                "give another path with --socket",
            )
        return
    if _answers(path):
        raise InputError(
            f"another process uses {path}",
            "a path that is not in use",
            "use the process that runs, or give another path with --socket",
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


def user_at_host() -> str:
    """Return `USER@HOST` of this machine, for a command of ssh."""
    return f"{pwd.getpwuid(os.geteuid()).pw_name}@{host_name()}"


def host_name() -> str:
    """Return the name of this machine, with its domain if it is known."""
    return socket.getfqdn()


def own_names() -> set[str]:
    """Return the names of this machine: a proxy can use the name with or without its domain."""
    return {socket.getfqdn(), socket.gethostname()}
