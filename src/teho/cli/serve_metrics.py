"""`teho serve-metrics`: the newest values of the user's running recordings, for a Prometheus."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from teho.cli.declare import option, plain_command
from teho.errors import InputError

__all__ = ["command"]

_LOOPBACK = "127.0.0.1"


@plain_command("""\
  teho serve-metrics --port 9417 --token-file ~/.teho-token
  teho serve-metrics
  curl --unix-socket /run/user/1000/teho-metrics.sock http://localhost/metrics""")
@option("--port NUMBER", "Listen on this port of 127.0.0.1; 0: any free port.",
        type=click.IntRange(0, 65535))  # fmt: skip
@option(
    "--socket PATH",
    "Listen on this Unix socket.",
    into="path",
    type=click.Path(path_type=Path),
    unset="a socket that only you can use",
)
@option(
    "--token-file FILE",
    "Answer only requests with the token in this file.",
    into="token_file",
    type=click.Path(path_type=Path),
)
def command(port: int | None, path: Path | None, token_file: Path | None) -> None:
    """Serve the newest values of your running recordings, until Ctrl-C.

    A Prometheus or VictoriaMetrics on this machine reads them at /metrics. The series have the
    labels of their node and GPU. The job is only in the series teho_job_info.

    All users of this machine can read a port of 127.0.0.1, unless you give --token-file.

    Reads: the recordings of running runs.

    Writes: the socket.

    Network: listens on a Unix socket, or with --port on a port of 127.0.0.1.
    """
    from teho.cli.token_file import warn_of_readers
    from teho.config.settings import load_settings
    from teho.jobs.export.live import live_text
    from teho.jobs.export.serve import serve_text
    from teho.jobs.http import read_secret
    from teho.process.listen import listen_on_port, listen_on_socket, socket_path
    from teho.store.owner import owner_of

    if path is not None and port is not None:
        raise InputError("--socket cannot be used together with --port", "one of them")
    home = load_settings().home_directory
    token = read_secret(token_file) if token_file else ""
    if token_file:
        warn_of_readers(token_file)
    if port is None:
        listener = listen_on_socket(path or socket_path("teho-metrics.sock"))
        place = f"http://localhost/metrics on the Unix socket {listener.getsockname()}"
    else:
        listener = listen_on_port(_LOOPBACK, port)
        place = f"http://{_LOOPBACK}:{listener.getsockname()[1]}/metrics"
    click.echo(f"The values are at {place}. End with Ctrl-C.")
    sys.stdout.flush()
    owner = owner_of(Path("/proc/self"))
    serve_text(listener, lambda: live_text(home, owner), token)
