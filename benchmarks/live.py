"""The live view: `teho top` with 64 and with 1,250 nodes, and a recorder that is watched.

One process behaves like the recorders of 64 nodes with 8 GPUs each. When `teho top` starts, each
node has already recorded rows for one minute. Then the process behaves like the recorders of 1,250
nodes. Each of these recorders sends a sample every 3.1 s, and has already recorded rows for 3 s.
`teho top` runs in a terminal of 120 columns and 40 lines. To measure the age of a value on the
screen, the process writes the time of each sample into the sample, as the host memory. The age is
the time of the screenshot minus this time. The screen has only room for some of the nodes. *Bytes
to the terminal* is the number of bytes that `teho top` writes to the terminal. nvitop shows one
node with eight GPUs in a terminal of the same size.

The finished run of 64 nodes takes one hour. The Slurm job runs on a real Slurm, whose daemons all
run on this machine. Its first value is the first amount of memory of a node on the screen.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import live_frames
from big_report import generated
from common import SCRIPTS, Figures, Row, installed, say, stub_environment
from recorder import cpu_s, memory_bytes, recorder_pid, running

_HERE = Path(__file__).parent
_COLUMNS, _LINES = 120, 40
_JOBS = ((64, 60, 2), (1250, 3, 5))
"""Nodes, seconds of rows, and largest age [s] of a value on the screen."""
_GPUS = 8
_MEMORY = re.compile(r"^[▶ ] (127\.0\.\S+).*?([\d,.]+) (MiB|GiB|TiB)\s+[\d.]+ %")
_TO_S = {"MiB": 1 / 1024, "GiB": 1.0, "TiB": 1024.0}
_MB = 1e6


class Terminal:
    """A program in a terminal; counts the bytes that it writes.

    Args:
        argv: the program.
        env: its environment.
    """

    def __init__(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        self.written = 0
        self.first_s: float | None = None
        """Time from the start to the first frame: to the first write of more than a line."""
        began_s = time.monotonic()
        self.pid, self._descriptor = pty.fork()
        if self.pid == 0:
            os.execvpe(argv[0], list(argv), {**env, "TERM": "xterm-256color"})
        size = struct.pack("HHHH", _LINES, _COLUMNS, 0, 0)
        fcntl.ioctl(self._descriptor, termios.TIOCSWINSZ, size)

        def read() -> None:
            with contextlib.suppress(OSError):
                while data := os.read(self._descriptor, 1 << 16):
                    self.written += len(data)
                    if self.first_s is None and self.written > 10 * _COLUMNS:
                        self.first_s = time.monotonic() - began_s

        threading.Thread(target=read, daemon=True).start()

    def end(self) -> None:
        """End the program."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        os.waitpid(self.pid, 0)


@contextlib.contextmanager
def recorders(
    home: Path, nodes: int, gpus: int, seconds: float, recorded_s: int
) -> Iterator[float]:
    """Play the recorders of many nodes; yield the monotonic time of their start."""
    run = home / "runs" / "20261126-080000-live-aaaa"
    argv = [
        sys.executable, str(_HERE / "live_recorders.py"), str(run), str(nodes), str(gpus),
        str(seconds), str(recorded_s),
    ]  # fmt: skip
    with running(argv, os.environ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield float((run / "began").read_text())


def ages_on_screen(
    env: Mapping[str, str], began_s: float, warm_s: float, seconds: float
) -> list[float]:
    """Return the ages [s] of the values on a screen of `teho top`, four times per second."""
    tmux = ["tmux", "-L", f"teho-bench-{os.getpid()}"]
    size = ["-x", str(_COLUMNS), "-y", str(_LINES)]
    subprocess.run(
        [*tmux, "new-session", "-d", *size, f"{SCRIPTS / 'teho'} top"], env=dict(env), check=True
    )
    ages: list[float] = []
    try:
        time.sleep(warm_s)
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            screen = subprocess.run(
                [*tmux, "capture-pane", "-p"], capture_output=True, text=True, check=True
            ).stdout
            now_s = time.monotonic() - began_s
            for line in screen.splitlines():
                if found := _MEMORY.match(line):
                    at_s = float(found[2].replace(",", "")) * _TO_S[found[3]]
                    ages.append(now_s - at_s)
            time.sleep(0.25)
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)
    return ages


def measure(*, quick: bool) -> list[Row]:
    # The recorders of many nodes find the lease within 20 s.
    warm_s, seconds = (1.0, 0.5) if quick else (25.0, 60.0)
    rows: list[Row] = []
    for nodes, recorded_s, age_s in [(2, 3, 2)] if quick else _JOBS:
        say(f"{nodes} nodes with {_GPUS} GPUs each")
        with tempfile.TemporaryDirectory() as folder:
            env = {**os.environ, "TEHO_HOME": folder}
            long_s = 3 * seconds + 6 * warm_s
            with recorders(Path(folder), nodes, _GPUS, long_s, recorded_s) as began_s:
                rows += _viewer(env, nodes, warm_s, seconds)
                if nodes != _JOBS[-1][0]:
                    rows += live_frames.of_views(env, nodes, min(warm_s, 3.0))
                if shutil.which("tmux"):
                    ages = sorted(ages_on_screen(env, began_s, warm_s, seconds))
                    rows += _age_row(nodes, ages, age_s)
    if not quick:
        home = generated(64, 1 / 24, os.environ)
        env = {**os.environ, "TEHO_HOME": str(home)}
        rows += live_frames.of_recording(home, env, 64)
        rows += live_frames.of_scheduler()
    rows += _watched_recorder(warm_s, seconds)
    return rows


def _age_row(nodes: int, ages: Sequence[float], budget_s: float) -> list[Row]:
    if not ages:
        return []
    what = f"`teho top`, {nodes} nodes: age of a value on the screen, 95 % are younger"
    age = Figures.of(ages[int(0.95 * len(ages))])
    return [Row(what=what, unit="s", ours=age, budget=budget_s)]


def _viewer(env: Mapping[str, str], nodes: int, warm_s: float, seconds: float) -> list[Row]:
    ours = _in_terminal([str(SCRIPTS / "teho"), "top"], env, warm_s, seconds)
    theirs = None
    is_small = nodes != _JOBS[-1][0]
    if installed("nvitop") and is_small:
        say("nvitop")
        with stub_environment() as stub:
            theirs = _in_terminal([str(SCRIPTS / "nvitop")], stub, warm_s, seconds)
    rows = []
    for key, what, unit, budget in (
        ("first_s", "time until the first frame", "s", 1 if is_small else None),
        ("percent", "CPU time of the viewer, share of one core", "%", 5 if is_small else None),
        (
            "bytes",
            "memory of the viewer, proportional set size (PSS)",
            "MB",
            120 if is_small else None,
        ),
        ("traffic", "bytes to the terminal per second", "kB/s", 20),
    ):
        rows.append(
            Row(
                what=f"`teho top`, {nodes} nodes: {what}",
                unit=unit,
                ours=ours[key],
                peer="nvitop, one node" if theirs else "",
                theirs=theirs[key] if theirs else None,
                budget=budget,
            )
        )
    return rows


def _in_terminal(
    argv: Sequence[str], env: Mapping[str, str], warm_s: float, seconds: float
) -> dict[str, Figures]:
    terminal = Terminal(argv, env)
    try:
        time.sleep(warm_s)
        used_s, written, began_s = cpu_s(terminal.pid), terminal.written, time.monotonic()
        time.sleep(seconds)
        span_s = time.monotonic() - began_s
        percent = 100 * (cpu_s(terminal.pid) - used_s) / span_s
        traffic = (terminal.written - written) / span_s / 1000
        size = memory_bytes(terminal.pid)["Pss"]
        first_s = terminal.first_s or float("nan")
    finally:
        terminal.end()
    return {
        "first_s": Figures.of(first_s),
        "percent": Figures.of(percent),
        "bytes": Figures.of(size / _MB),
        "traffic": Figures.of(traffic),
    }


def _watched_recorder(warm_s: float, seconds: float) -> list[Row]:
    """Measure the recorder of one node with eight stub GPUs, without and with a viewer."""
    say("a recorder without and with a viewer")
    teho = [str(SCRIPTS / "teho"), "run", "--quiet", "--", "sleep", "86400"]
    percent: dict[str, float] = {}
    with stub_environment() as env, running(teho, env):
        pid = recorder_pid(Path(env["TEHO_HOME"]))
        time.sleep(min(warm_s, 12))
        for name in ("alone", "watched"):
            with contextlib.ExitStack() as stack:
                if name == "watched":
                    viewer = Terminal([str(SCRIPTS / "teho"), "top"], env)
                    stack.callback(viewer.end)
                    time.sleep(min(warm_s, 12))
                used_s, began_s = cpu_s(pid), time.monotonic()
                time.sleep(seconds)
                percent[name] = 100 * (cpu_s(pid) - used_s) / (time.monotonic() - began_s)
    return [
        Row(
            what="recorder with eight GPUs while it is watched: CPU time, share of one core",
            unit="%",
            ours=Figures.of(percent["watched"]),
            peer="without a viewer",
            theirs=Figures.of(percent["alone"]),
            budget=0.3,
        )
    ]
