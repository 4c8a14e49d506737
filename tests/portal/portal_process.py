"""A portal as a process, and requests to it that are written by hand."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import nvml_stub
from nvml_stub import Scenario

from support import TEHO, wait_for

ANSWER_S = 100.0
"""Longer than the portal allows for a page: on a busy machine, reports take long."""


class Answer(NamedTuple):
    """What a request was answered with."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def text(self) -> str:
        """The page; the spaces that hold a number and its unit together are plain ones."""
        return self.body.decode().replace("\N{NO-BREAK SPACE}", " ")


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=ANSWER_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(ANSWER_S)
        self.sock.connect(str(self._path))


class PortalProcess:
    """A portal that runs."""

    def __init__(self, process: subprocess.Popen[str], log: Path, path: Path | None) -> None:
        self.process = process
        self.path = path
        self._log = log

    @property
    def said(self) -> str:
        """All that it has printed."""
        return self._log.read_text()

    @property
    def links(self) -> list[str]:
        """The links that it has printed, newest last."""
        return re.findall(r"http://127\.0\.0\.1:\d+/\?token=\S+", self.said)

    @property
    def port(self) -> int:
        return int(self.links[0].split(":")[2].split("/")[0])

    def connection(self) -> http.client.HTTPConnection:
        if self.path:
            return UnixConnection(self.path)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_S)

    def ask(self, address: str, method: str = "GET", body: str | None = None,
            **headers: str) -> Answer:  # fmt: skip
        """Send one request; `_` in the name of a header stands for `-`."""
        connection = self.connection()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, address, body, named)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()


@contextmanager
def portal(
    folder: Path, *options: str, env: Mapping[str, str] | None = None, on_port: bool = False
) -> Iterator[PortalProcess]:
    """Start a portal over the recordings in `folder/home`."""
    log = folder / f"portal-{time.monotonic_ns()}.log"
    path = None if on_port else folder / "portal.sock"
    where = ["--port", "0"] if on_port else ["--socket", str(path)]
    with log.open("w") as output:
        process = subprocess.Popen(
            [*TEHO, "portal", *where, *options],
            env={**os.environ, **environment(folder), **(env or {})},
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
        )
    running = PortalProcess(process, log, path)
    try:
        wait_for(lambda: process.poll() is not None or _is_ready(running), 60)
        assert process.poll() is None, running.said
        yield running
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)
    assert "Traceback" not in running.said, running.said


def _is_ready(running: PortalProcess) -> bool:
    if running.path is None and not running.links:
        return False
    try:
        return running.ask("/style.css").status in {200, 403}
    except OSError:
        return False


def environment(folder: Path) -> dict[str, str]:
    return {
        "TEHO_HOME": str(folder / "home"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "XDG_CONFIG_HOME": str(folder / "config"),
    }


STEADY = Scenario(("gpus 2", "processes 0 parent", "0 * 50 1000 400", "0 1 50 1000 250"))


@contextmanager
def recorded(folder: Path, library: Path, *command: str, **more: str) -> Iterator[Path]:
    """Record a program with two stub GPUs until the block ends.

    Args:
        folder: for the recording.
        library: the folder with the stub of the driver's library.
        command: the program.
        more: variables of its environment.
    """
    scenario = STEADY.write(folder / "scenario.txt")
    env = {
        **os.environ,
        **environment(folder),
        **nvml_stub.environment(library, scenario),
        **more,
    }
    process = subprocess.Popen(
        [*TEHO, "run", "-q", "--every", "200ms", "--name", "live", "--", *command], env=env
    )
    try:
        wait_for(lambda: list((folder / "home").glob("runs/[!.]*/nodes/*.json")))
        (directory,) = (folder / "home").glob("runs/[!.]*")
        yield directory
    finally:
        process.terminate()
        process.wait(60)


class Events:
    """A stream of events."""

    def __init__(
        self,
        connection: http.client.HTTPConnection,
        address: str,
        cursor: str = "",
        **headers: str,
    ) -> None:
        self._connection = connection
        if cursor:
            headers["Last-Event-ID"] = cursor
        self._connection.request("GET", address, headers=headers)
        self.answer: http.client.HTTPResponse = self._connection.getresponse()

    def until(self, name: str, count: int = 1) -> list[tuple[str, str, Any]]:
        """Return the events until some of a name have come: id, name, data."""
        found: list[tuple[str, str, Any]] = []
        fields: dict[str, str] = {}
        while sum(one[1] == name for one in found) < count:
            line = self.answer.readline().decode()
            assert line, "the stream has ended"
            key, _, value = line.rstrip("\n").partition(": ")
            if key:
                fields[key] = value
            elif fields.get("event"):
                found.append((fields.get("id", ""), fields["event"], json.loads(fields["data"])))
                fields = {}
        return found

    def close(self) -> None:
        self.answer.close()
        self._connection.close()
