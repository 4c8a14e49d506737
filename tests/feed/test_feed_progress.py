"""The line of progress: on a terminal it is shown, in a pipe it is not."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

# The real `pack`, and a line from the beginning on: its 2 s of silence would be the test's.
PROGRAM = """
import sys
import teho.feed.progress as progress
from teho.feed import pack
progress._SILENT_S = float(sys.argv[3])
progress._EVERY_S = 0
pack(sys.argv[1], sys.argv[2], shard_bytes=5000)
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    for number in range(60):
        (folder / f"{number:02d}.txt").write_bytes(bytes(900))
    return folder


def test_a_terminal_shows_how_far_it_is(source: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    started = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, source, tmp_path / "out", "0"], stderr=theirs
    )
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 4096):
            shown += part
    except OSError:  # Linux reports the end of a terminal so
        pass
    os.close(ours)
    assert started.wait() == 0
    lines = shown.decode().split("\r\x1b[K")
    assert lines[0] == lines[-1] == "", "at the end, the line is gone"
    found = [re.fullmatch(r"teho: packing, (\d+) of 60 samples", line) for line in lines[1:-1]]
    assert all(found), lines
    numbers = [int(one[1]) for one in found if one]
    assert numbers == [*range(60)], "the samples that are done"


@pytest.mark.parametrize(("silent_s", "is_terminal"), [("0", False), ("60", True)])
def test_a_pipe_and_a_short_call_show_nothing(
    source: Path, tmp_path: Path, silent_s: str, is_terminal: bool
) -> None:
    ours, theirs = pty.openpty() if is_terminal else os.pipe()
    subprocess.run(
        [sys.executable, "-c", PROGRAM, source, tmp_path / "out", silent_s],
        stderr=theirs, check=True,
    )  # fmt: skip
    os.write(theirs, b"end\n")
    assert os.read(ours, 100).strip() == b"end"
    os.close(ours)
    os.close(theirs)
