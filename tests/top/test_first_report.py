"""The first report is made by a child process: the screen never waits for it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from teho.store.layout import run_file

EXAMPLE = Path(__file__).parents[2] / "examples/runs/one-idle-gpu"
BEGIN = """\
import os, signal, sys, threading, time
from pathlib import Path
from teho.config.settings import Settings
from teho.show.top import live
from teho.show.top.live import LiveSource

os.sched_getaffinity = lambda _: {0, 1}
run = Path(sys.argv[1])
first_report = live.first_report

def gone(pid):
    return not Path(f"/proc/{pid}").exists()

def until(condition):
    end_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.02)
"""
SAME = """
own = os.getpid()

def only_in_a_child(directory, settings):
    assert os.getpid() != own
    return first_report(directory, settings)

live.first_report = only_in_a_child
source = LiveSource(run, Settings(), waits=False)
assert source._first is not None
until(lambda: not source.awaits_report)
assert source._pause_s >= 10
source.poll(reads_all=True)
other = source.frame()
source.close()
waiting = LiveSource(run, Settings(), waits=True)
waiting.poll(reads_all=True)
one = waiting.frame()
waiting.close()
assert other.report.verdict == one.report.verdict != "", one.report.verdict
assert other.report.facts == one.report.facts
assert [x.kind for x in other.report.findings] == [x.kind for x in one.report.findings]
assert other.alert == one.alert
"""
HANGS = """
started = run / "children"

def hang(directory, settings):
    pid = os.fork()  # as parallel_map does
    with started.open("a") as file:
        file.write(f"{os.getpid()}\\n")
    time.sleep(1000)

live.first_report = hang
began_s = time.monotonic()
source = LiveSource(run, Settings(), waits=False)
source.poll()
frame = source.frame()
assert time.monotonic() - began_s < 20
assert frame.report.verdict == "Teho is making the report of the run so far."
assert source.awaits_report
until(lambda: started.exists() and len(started.read_text().splitlines()) == 2)
pids = [int(word) for word in started.read_text().split()]
assert os.getpid() not in pids
assert all(os.getpgid(pid) == source._first._share._pid for pid in pids)
source.close()
until(lambda: not source._reporting.is_alive())
assert not source.awaits_report
try:
    os.waitpid(-1, 0)
    raise SystemExit("a child was not waited for")
except ChildProcessError:
    pass
until(lambda: all(gone(pid) or "Z" in Path(f"/proc/{pid}/stat").read_text() for pid in pids))
assert source.frame().report.verdict.startswith("Teho is making")
"""
DIES = """
own = os.getpid()

def die(directory, settings):
    if os.getpid() != own:
        os.kill(os.getpid(), signal.SIGKILL)
    return first_report(directory, settings)

live.first_report = die
source = LiveSource(run, Settings(), waits=False)
until(lambda: not source.awaits_report)
assert source.frame().report.verdict.startswith("GPU 3 on g1 was never used.")
source.close()
"""
ONE_CORE = """
os.sched_getaffinity = lambda _: {0}
source = LiveSource(run, Settings(), waits=False)
assert source._first is None
assert source.frame().report.verdict.startswith("GPU 3 on g1 was never used.")
source.close()
"""
DAMAGED = """
from teho.errors import DamagedError

def damaged(directory, settings):
    raise DamagedError("nodes/g2.json: no JSON")

live.first_report = damaged
source = LiveSource(run, Settings(), waits=False)
until(lambda: not source.awaits_report)
assert "nodes/g2.json: no JSON" in source.frame().notes
source.close()
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return the run of the example, which goes on."""
    directory = tmp_path / "20261123-094500-one-aaaa"
    shutil.copytree(EXAMPLE, directory)
    described = msgspec.json.decode(run_file(directory).read_bytes())
    del described["end"]
    run_file(directory).write_bytes(msgspec.json.encode({**described, "host": "elsewhere"}))
    for written in (directory / "nodes/g1.json", directory / "samples/g1.parquet"):
        written.touch()
    return directory


def done(run: Path, code: str) -> None:
    """Run code in a process of its own: that of the tests may have threads."""
    shown = subprocess.run(
        [sys.executable, "-c", BEGIN + code, str(run)],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert (shown.returncode, shown.stderr) == (0, "")


def test_the_report_of_a_child_says_the_same(run: Path) -> None:
    done(run, SAME)


def test_the_screen_does_not_wait_and_its_end_ends_the_child_and_its_children(run: Path) -> None:
    done(run, HANGS)


def test_if_the_child_dies_the_report_is_made_here(run: Path) -> None:
    done(run, DIES)


def test_with_one_core_there_is_no_child(run: Path) -> None:
    done(run, ONE_CORE)


def test_a_recording_that_the_child_cannot_read_is_a_note(run: Path) -> None:
    done(run, DAMAGED)
