"""`teho portal`: all runs in a browser."""

from __future__ import annotations

import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from teho.cli import say
from teho.cli.declare import option, plain_command
from teho.cli.own_path import own_path
from teho.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from teho.config.settings import Settings

__all__ = ["command"]

_SOCKET = "teho-portal.sock"
_LOOPBACK = "127.0.0.1"
_ALL = frozenset({"0.0.0.0", "::"})  # noqa: S104 - only named, to print a name instead
_LOCAL_NAME, _LOCAL_PORT = "localhost", 8750
"""The user's own computer, and the port there in the line for ssh."""
_QUIET_S = 2.0


@plain_command("""\
  teho portal
  teho portal --port 0
  teho portal --read-only-export public_html/runs""")
@option("--socket PATH", "Listen on this Unix socket.", unset="a socket in a private folder",
        into="path", type=click.Path(path_type=Path))  # fmt: skip
@option("--port N", "Listen on this port instead of a Unix socket; 0: any free port.",
        unset="none", type=click.IntRange(0, 65535))  # fmt: skip
@option("--address ADDRESS", "Listen on this address, together with --port.", unset=_LOOPBACK)
@option("--allow-host NAME",
        "Also accept requests for this host name, for example from a proxy; may be repeated.",
        unset="only localhost", into="hosts", multiple=True)  # fmt: skip
@option("--read-only-export FOLDER", "Write the pages as files into this folder, then exit.",
        unset="none", into="folder", type=click.Path(path_type=Path, file_okay=False))  # fmt: skip
def command(
    path: Path | None,
    port: int | None,
    address: str | None,
    hosts: tuple[str, ...],
    folder: Path | None,
) -> None:
    """Show all your runs in a browser, also while they are running.

    By default, only you can connect: the portal listens on a Unix socket, and prints the command
    ssh that connects your computer with the portal. With --port, the portal prints a link that
    works once. If TEHO_SHARED is set, the portal also shows the runs that your groups share. To end
    the portal, press Ctrl-C.

    Reads: the recordings in TEHO_HOME and TEHO_SHARED, and the cluster files.

    Writes: a cache in ~/.cache/teho, the socket, a small file in each running recording that a
    browser shows, and the files of --read-only-export.

    Network: listens on a Unix socket, or with --port on a port. The recorders of running runs
    connect to this command.
    """
    from teho.config.settings import load_settings

    settings = load_settings()
    if folder is not None:
        if path or port is not None:
            raise InputError("--read-only-export cannot be used with --socket or --port", "one")
        from teho.show.portal.export import export
        from teho.units import counted

        written = export(settings, folder)
        if written.left_out:
            count, first = counted(len(written.left_out), "run"), written.left_out[0]
            say(f"left out {count} without a report. `teho report {first}` says why")
        pages = counted(written.pages, "page")
        say(f"wrote {pages} to {folder}. Everybody who can open these files sees your runs")
        return
    if path and port is not None:
        raise InputError("--socket cannot be used together with --port", "one of them")
    if address and port is None:
        raise InputError("--address works only with --port", next_step="add `--port 0`")
    for package in ("starlette", "uvicorn"):
        if find_spec(package) is None:
            raise InputError(
                f"the package {package} is not installed", "", "`pip install 'teho[portal]'`"
            )
    _serve(settings, path, port, address or _LOOPBACK, hosts)


def _serve(
    settings: Settings, path: Path | None, port: int | None, address: str, hosts: tuple[str, ...]
) -> None:
    from teho.process.listen import (
        host_name,
        listen_on_port,
        listen_on_socket,
        own_names,
        socket_path,
        user_at_host,
    )
    from teho.show.portal.app import Portal
    from teho.show.portal.guard import Link
    from teho.show.portal.recordings import Recordings
    from teho.show.portal.serve import serve

    if port is None:
        listener = listen_on_socket(path or socket_path(_SOCKET))
        link = None
    else:
        listener = listen_on_port(address, port)
        number = listener.getsockname()[1]
        name = host_name() if address in _ALL else address
        hosts = (*hosts, *(own_names() if address in _ALL else (name,)))

        def print_link(token: str) -> None:
            click.echo(f"  http://{name}:{number}/?token={token}")
            sys.stdout.flush()

        def renew(token: str) -> None:
            click.echo("The link was used. The next link is:")
            print_link(token)

        link = Link(renew)
    recordings = Recordings(settings)
    recordings.refresh(_progress())
    if link is None:
        socket_file = listener.getsockname()
        click.echo("On your own computer, run this command, and leave it open:")
        click.echo(f"  ssh -N -L {_LOCAL_PORT}:{socket_file} {user_at_host()}")
        click.echo(f"Then open http://{_LOCAL_NAME}:{_LOCAL_PORT}/ in your browser.")
        click.echo("To end the portal, press Ctrl-C here.")
        sys.stdout.flush()
    else:
        place = " of this machine" if address == _LOOPBACK else ""
        click.echo(f"Open this link in a browser{place}. It works once:")
        print_link(link.token)
        if address == _LOOPBACK:
            click.echo("For a browser of another computer, first run this command there:")
            click.echo(f"  ssh -N -L {number}:{address}:{number} {user_at_host()}")
        sys.stdout.flush()
    serve(Portal(recordings, own_path()), listener, link, hosts)
    recordings.close()


def _progress() -> Callable[[int, int], None]:
    """Return a function that prints how many runs were read, if this takes long."""
    began_s = time.monotonic()

    def show(done: int, total: int) -> None:
        if time.monotonic() - began_s > _QUIET_S and sys.stderr.isatty():
            say(f"read {done:,} of {total:,} recordings")

    return show
