"""A program that reads from a file system that does not answer: a real one, through FUSE."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from stubs import silent_files
from support import wait_for
from teho.observe.idle_waits import IdleWaits
from teho.store import slices
from teho.unwind.memory import Memory
from teho.unwind.waits import Waits
from test_hangs import END_S, STEPS, THRESHOLDS, Hanging

READS = "open(os.environ['SHARD'], 'rb').read(100)"
FAULTS = """\
import mmap
shard = open(os.environ["SHARD"], "rb")
pages = mmap.mmap(shard.fileno(), 0, prot=mmap.PROT_READ)
pages[0]
"""


LONGEST_S = 30


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Mount the file system; return its folder."""
    folder = tmp_path_factory.mktemp("silent")
    with ExitStack() as stack:
        try:
            stack.enter_context(silent_files.mounted(folder))
        except OSError as error:
            pytest.skip(f"no FUSE here: {error}")
        yield folder


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def reading(shard: Path, code: str) -> subprocess.Popen[bytes]:
    """Start a program that reads the file."""
    return subprocess.Popen(
        [sys.executable, "-c", f"import os\n{code}"], env={**os.environ, "SHARD": str(shard)}
    )


@pytest.mark.parametrize(("code", "named"), [(READS, True), (FAULTS, False)])
def test_the_file_is_read_from_the_kernel(silent: Path, code: str, named: bool) -> None:
    shard = silent / f"{named}.bin"
    program = reading(shard, code)
    try:
        wait_for(lambda: state_of(program.pid) == "D", 20)
        memory = Memory(program.pid)
        waits = Waits(program.pid, memory)
        try:
            # Of a mapped page, the kernel does not report the file.
            assert waits.blocked_on() == (str(shard) if named else "")
        finally:
            waits.close()
            memory.close()
        idle = IdleWaits()
        for elapsed_s in (1.0, 2.0, 200.0):
            idle.check({"node": {"job_cpu_s": 0.0}}, {program.pid}, elapsed_s)
        assert idle.found is not None
        (one,) = idle.found.processes
        assert one.uninterruptible
        program.send_signal(signal.SIGINT)  # Python would raise KeyboardInterrupt
        time.sleep(0.2)
        assert state_of(program.pid) == "D"
    finally:
        program.kill()
        program.wait(LONGEST_S)


def test_the_report_names_the_file_and_the_line(
    silent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = silent / "shard_011.bin"
    (tmp_path / "thresholds.toml").write_text(THRESHOLDS)
    path = tmp_path / "train.py"
    path.write_text(f"{STEPS}steps()\n{READS}\n")
    monkeypatch.setattr(slices, "_END_S", END_S)
    hanging = Hanging(tmp_path, "silent", [sys.executable, str(path)], SHARD=str(shard))
    said = ""
    try:
        wait_for(hanging.marker.exists, 60)
        end_s = time.monotonic() + 60
        while time.monotonic() < end_s and "does not answer" not in said:
            said = hanging.said(tmp_path)
            time.sleep(0.5)
    finally:
        hanging.end()
    assert said.startswith("The run is stuck: no step for ")
    assert (
        f"The program waits for a file system that does not answer ({shard}), in "
        "`open(os.environ['SHARD'], 'rb').read(100)` (train.py:" in said
    )
