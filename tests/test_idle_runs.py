"""Programs without the probe that are idle: those that hang, and those that wait on purpose.

The limits of the recorder and of the rule are minutes. Here they are seconds. Traffic does not
count here: other programs of this machine have some.
"""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import pytest

from teho.config.settings import Settings
from teho.model.run import RunState
from teho.show.loaded import LoadedRun

SOON = """
import sys
from teho.cli import main
from teho.observe import idle_waits
idle_waits._FIRST_S, idle_waits._EVERY_S = 1.0, 1.0
sys.argv[0] = "teho"
main()
"""
THRESHOLDS = """
[run_idle]
idle_min_s = 4.0
worked_min_s = 0.5
bytes_max_per_s = 1e9
"""
WORK = """
import os, signal, socket, subprocess, sys, threading, time
while time.process_time() < 0.6:
    sum(range(10_000))
"""
HANGS = {
    "two locks": """
        first, second = threading.Lock(), threading.Lock()
        def snapshot():
            with second:
                time.sleep(0.5)
                with first: pass
        threading.Thread(target=snapshot, daemon=True).start()
        with first:
            time.sleep(0.2)
            second.acquire()
        """,
    "a pipe": "os.read(os.pipe()[0], 1)",
    "a child that waits for its parent": """
        subprocess.run(["cat"], stdin=os.fdopen(os.pipe()[0]))
        """,
}
ON_PURPOSE = {
    "sleep": "time.sleep(600)",
    "a server": """
        server = socket.create_server(("127.0.0.1", 0))
        server.accept()
        """,
    "a server with threads": """
        server = socket.create_server(("127.0.0.1", 0))
        thread = threading.Thread(target=server.accept, daemon=True)
        thread.start()
        thread.join()
        """,
    "a shell that waits for a remote job": """
        import shutil
        shutil.copy("/bin/cat", os.environ["IDLE"] + "/ssh")
        subprocess.run(
            ["sh", "-c", "exec 3<&0; " + os.environ["IDLE"] + "/ssh <&3 & wait"],
            stdin=os.fdopen(os.pipe()[0]),
        )
        """,
    "a slow download": """
        server = socket.create_server(("127.0.0.1", 0))
        def serve():
            connection = server.accept()[0]
            while True:
                connection.sendall(bytes(20_000)); time.sleep(0.2)
        threading.Thread(target=serve, daemon=True).start()
        client = socket.create_connection(server.getsockname())
        while client.recv(65536): pass
        """,
    "a terminal": "sys.stdin.readline()",
}


class Idle:
    """A program that is recorded without the probe."""

    def __init__(self, folder: Path, name: str, program: str) -> None:
        self.folder = folder / name.replace(" ", "-")
        self.folder.mkdir()
        path = self.folder / "program.py"
        path.write_text(WORK + dedent(program))
        self._ours, stdin = pty.openpty() if name == "a terminal" else (None, subprocess.DEVNULL)
        command = ["run", "-q", "--probe", "off", "--every", "200ms", "--", sys.executable, path]
        self._process = subprocess.Popen(
            [sys.executable, "-c", SOON, *command],
            env={**os.environ, "TEHO_HOME": str(self.folder), "IDLE": str(self.folder)},
            stdin=stdin, stdout=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        if self._ours is not None:
            os.close(stdin)

    def said(self) -> str:
        """Return what the report says of a run that may be stuck."""
        runs = list(self.folder.glob("runs/[!.]*"))
        if not runs:
            return ""
        loaded = LoadedRun(runs[0], Settings(thresholds=str(self.folder.parent / "limits.toml")))
        assert loaded.state is RunState.RUNNING
        return " ".join(one.sentence for one in loaded.findings if one.kind == "run_idle")

    def end(self) -> None:
        """End the program and what it started."""
        os.killpg(self._process.pid, signal.SIGTERM)
        self._process.communicate(timeout=60)
        if self._ours is not None:
            os.close(self._ours)


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """All programs, which run at the same time -> what their reports said."""
    folder = tmp_path_factory.mktemp("idle")
    (folder / "limits.toml").write_text(THRESHOLDS)
    running = {name: Idle(folder, name, text) for name, text in (HANGS | ON_PURPOSE).items()}
    found = dict.fromkeys(running, "")
    try:
        end_s = time.monotonic() + 60
        while time.monotonic() < end_s and not all(found[name] for name in HANGS):
            time.sleep(1)
            for name in HANGS:
                found[name] = found[name] or running[name].said()
        time.sleep(2)  # the others have the same time, and some more
        for name, one in running.items():
            found[name] = found[name] or one.said()
    finally:
        for one in running.values():
            one.end()
    return found


@pytest.mark.parametrize("name", HANGS)
def test_a_program_that_hangs_may_be_stuck(said: dict[str, str], name: str) -> None:
    assert said[name].startswith("The run may be stuck. All cores have been idle for ")


@pytest.mark.parametrize("name", ON_PURPOSE)
def test_a_program_that_waits_on_purpose_is_not_called_stuck(
    said: dict[str, str], name: str
) -> None:
    assert said[name] == ""
