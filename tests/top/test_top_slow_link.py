"""The screen over a slow connection, such as ssh from far away."""

from __future__ import annotations

import os
import pty
import re
import select
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

import pytest

from support import TEHO
from top.large_run import run_of_512_gpus

BYTES_PER_S = 1e6 / 8
"""1 Mbit/s."""
SLOT_S = 0.05
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-9;?<=>]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()].|[=>78])"
)
"""Sequences that control the terminal."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("textual", reason="textual is not installed")
    return run_of_512_gpus(tmp_path_factory.mktemp("large"))


class Link:
    """A terminal that takes at most 1 Mbit/s from `teho top`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.written = b""
        self.slots = self.idle = 0
        """Slots of time, and those in which the program had nothing to write."""

    def read(self, seconds: float) -> None:
        """Take bytes for some time, as fast as the link does."""
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            began_s = time.monotonic()
            self.slots += 1
            if select.select([self._descriptor], [], [], 0)[0]:
                self.written += os.read(self._descriptor, int(BYTES_PER_S * SLOT_S))
            else:
                self.idle += 1
            time.sleep(max(0.0, began_s + SLOT_S - time.monotonic()))

    def until(self, text: str, within_s: float = 60.0) -> None:
        """Read until the program has written a text after this call."""
        begin = len(self.written)
        end_s = time.monotonic() + within_s
        while text not in _ESCAPES.sub("", self.written[begin:].decode(errors="replace")):
            assert time.monotonic() < end_s, text
            self.read(0.2)

    def press(self, key: bytes) -> None:
        os.write(self._descriptor, key)


@contextmanager
def watched(run: Path) -> Iterator[Link]:
    """Show a run of 512 GPUs whose values all change, over a slow link; end it with `q`."""
    pid, descriptor = pty.fork()
    if pid == 0:
        argv = [*TEHO, "top", str(run), "--replay", "--speed", "5"]
        os.execvpe(argv[0], argv, {**os.environ, "TERM": "xterm-256color"})
    ioctl(descriptor, TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    link = Link(descriptor)
    try:
        link.until("NODE")
        yield link
        link.press(b"q")
        end_s = time.monotonic() + 30
        while os.waitpid(pid, os.WNOHANG) == (0, 0):
            assert time.monotonic() < end_s
            try:
                link.read(0.1)
            except OSError:  # the program has closed the terminal
                time.sleep(0.1)
        pid = 0
    finally:
        if pid:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
        os.close(descriptor)


def opens_a_node(link: Link) -> None:
    link.press(b"\r")
    link.until("Network in")
    link.press(b"\x1b")
    link.until("NODE")


def test_a_link_of_1_mbit_per_s_is_mostly_idle(run: Path) -> None:
    with watched(run) as link:
        link.read(1.0)
        link.slots = link.idle = 0
        before = len(link.written)
        link.read(6.0)
        assert len(link.written) > before  # the values change
        assert link.idle > link.slots / 2
        opens_a_node(link)


def test_after_a_link_that_stalls_the_screen_continues(run: Path) -> None:
    with watched(run) as link:
        time.sleep(8.0)
        opens_a_node(link)
        link.slots = link.idle = 0
        link.read(4.0)
        assert link.idle > link.slots / 2  # what was missed is not sent later
