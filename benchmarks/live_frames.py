"""Rows of the live benchmark about single frames.

They are: the first frame with a value of a job that Teho does not record (on a real Slurm), the
first frame and the memory for a finished recording of 64 nodes with 8 GPUs each, and the bytes of
each view.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from common import ROOT, SCRIPTS, Figures, Row, say
from recorder import memory_bytes
from terminals import in_terminal, plain

sys.path[:0] = [str(ROOT / "tests" / "twins"), str(ROOT / "tests")]

__all__ = ["of_recording", "of_scheduler", "of_views"]

_ROUNDS = 5
_LONGEST_S = 60.0
_VALUE = re.compile(r"[\d.,]+ (?:MiB|GiB|TiB)")
_MB = 1e6
_LINK_BYTES_PER_S = 1e6 / 8
"""A link of 1 Mbit/s."""
_SETTLED_S = 0.35
"""The screen is drawn every 0.5 s; a view that was opened is drawn at once."""
_JOB = """\
#!/bin/bash
#SBATCH --partition=gpu --account=project_2001234 --time=30 --gres=gpu:v100:1 --mem=1G
#SBATCH --nodes=3 --ntasks-per-node=1 --output={output}
srun sleep 1200
"""


class _Screen:
    """A program in a terminal; keeps what the program writes.

    Args:
        argv: the program.
        env: its environment.
    """

    def __init__(self, argv: Sequence[str], env: Mapping[str, str]) -> None:
        self.written = b""
        self.began_s = time.monotonic()
        self.pid, self._descriptor = in_terminal(argv, env)

    def read(self, seconds: float) -> None:
        """Read for some time."""
        end_s = time.monotonic() + seconds
        while (left_s := end_s - time.monotonic()) > 0:
            if not select.select([self._descriptor], [], [], left_s)[0]:
                return
            try:
                self.written += os.read(self._descriptor, 1 << 16)
            except OSError:
                return

    def until(self, pattern: re.Pattern[str], since: int = 0) -> float:
        """Return the time from the start of the program until it has written this text.

        Args:
            pattern: the text.
            since: number of bytes that are left out.
        """
        end_s = time.monotonic() + _LONGEST_S
        while time.monotonic() < end_s:
            self.read(0.02)
            if pattern.search(plain(self.written[since:])):
                return time.monotonic() - self.began_s
        return float("nan")

    def press(self, keys: bytes, wanted: str) -> int:
        """Press keys; return the number of bytes that the program writes until the view is drawn.

        Args:
            keys: what is pressed.
            wanted: pattern of a text that the keys draw.
        """
        before = len(self.written)
        os.write(self._descriptor, keys)
        self.until(re.compile(wanted), before)
        self.read(_SETTLED_S)
        return len(self.written) - before

    def end(self) -> None:
        """End the program."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        # A program that ends may write into a full terminal.
        while os.waitpid(self.pid, os.WNOHANG) == (0, 0):
            self.read(0.1)
        os.close(self._descriptor)


def of_scheduler() -> list[Row]:
    """Measure `teho top JOB` for a running job of three nodes that Teho does not record."""
    from slurm_daemons import why_not

    if reason := why_not():
        say(f"no Slurm: {reason}")
        return []
    from recording_site import recording_site

    say("a job of a scheduler")
    times: list[float] = []
    with recording_site(3, apart=True) as site:
        job = site.send(_JOB.format(output=site.folder / "%j.out"), site.folder)
        site.until("its start", lambda: "RUNNING" in site.state(job))
        env = {**os.environ, **site.twin.environment}
        for _ in range(_ROUNDS):
            screen = _Screen([str(SCRIPTS / "teho"), "top", job], env)
            times.append(screen.until(_VALUE))
            screen.end()
        site.twin.run("scancel", job)
    what = "`teho top JOB`, a Slurm job of 3 nodes that is not recorded: time until the first value"
    return [Row(what=what, unit="s", ours=Figures.of(*times), budget=3)]


def of_recording(home: Path, env: Mapping[str, str], nodes: int) -> list[Row]:
    """Measure how a finished recording is opened, and how it is played."""
    (run,) = (home / "runs").iterdir()
    rows: list[Row] = []
    for options, title in (([], "opened"), (["--replay"], "played")):
        say(f"a finished recording of {nodes} nodes, {title}")
        firsts, sizes = [], []
        for _ in range(_ROUNDS):
            screen = _Screen([str(SCRIPTS / "teho"), "top", run.name, *options], env)
            firsts.append(screen.until(re.compile(r"quit")))
            screen.read(10.0 if options else 3.0)
            sizes.append(memory_bytes(screen.pid)["Pss"] / _MB)
            screen.end()
        what = f"`teho top {' '.join(['RUN', *options])}`, a finished run of {nodes} nodes"
        rows.append(
            Row(what=f"{what}: time until the first frame", unit="s", ours=Figures.of(*firsts))
        )
        rows.append(Row(what=f"{what}: memory (PSS)", unit="MB", ours=Figures.of(*sizes)))
    return rows


def of_views(env: Mapping[str, str], nodes: int, warm_s: float) -> list[Row]:
    """Count the bytes of the first frame and of each view of a run that goes on."""
    say("the bytes of each view")
    screen = _Screen([str(SCRIPTS / "teho"), "top"], env)
    try:
        screen.until(re.compile(r"quit"))
        screen.read(_SETTLED_S)
        found = {"the first frame": len(screen.written)}
        screen.read(warm_s)
        found["a node"] = screen.press(b"\r", "node 127")
        found["a GPU"] = screen.press(b"\r", "GPU 0 of ")
        screen.press(b"h", "node 127")
        screen.press(b"G", "▶")
        found["a process"] = screen.press(b"\r", r"process \d+ on ")
        found["the help"] = screen.press(b"?", "Help")
    finally:
        screen.end()
    return [
        Row(
            what=f"`teho top`, {nodes} nodes: time of {name} on a link of 1 Mbit/s",
            unit="s",
            ours=Figures.of(count / _LINK_BYTES_PER_S),
            ours_text=f"{count / _LINK_BYTES_PER_S:.2f} ({count / 1000:.1f} kB)",
        )
        for name, count in found.items()
    ]
