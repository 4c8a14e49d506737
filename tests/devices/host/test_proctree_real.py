"""Real processes, and what the kernel counted of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from stubs.proc_tree import TICK_S
from teho.devices.host.proctree import ProcessTree

SUPERVISOR = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
pid = os.fork()
if pid == 0:
    os.execv(sys.executable, [sys.executable, "-S", "-c", *sys.argv[1:]])
print("program", pid, flush=True)
for _ in range(int(sys.argv[2])):
    ended, status, usage = os.wait4(-1, 0)
    print("reaped", usage.ru_utime + usage.ru_stime, flush=True)
sys.stdin.read()
"""
COMMON = """
import os, signal, sys, time
def say(*words): os.write(1, (" ".join(map(str, words)) + "\\n").encode())
def wait(): os.read(0, 1)
def burn(seconds):
    start = time.process_time()
    while time.process_time() - start < seconds: pass
"""


class Real:
    """A supervisor with a program under it, in step with the test."""

    def __init__(self, program: str, reaps: int = 1, *arguments: str) -> None:
        code = COMMON + textwrap.dedent(program)
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-c", SUPERVISOR, code, str(reaps), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self.pids = [int(self.hear("program"))]
        self.tree = ProcessTree()
        self.tree.add(self.pids[0], self.process.pid)

    def hear(self, word: str) -> str:
        """Wait for the line that begins so, and return the rest of it."""
        first, _, rest = self.process.stdout.readline().decode().strip().partition(" ")
        assert first == word
        return rest

    def go(self) -> None:
        self.process.stdin.write(b".")

    def stop(self) -> None:
        self.process.stdin.close()
        for pid in self.tree.pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture
def real() -> Iterator:
    running = []

    def start(program: str, reaps: int = 1, *arguments: str) -> Real:
        running.append(Real(program, reaps, *arguments))
        return running[-1]

    yield start
    for item in running:
        item.stop()


def test_real_cpu_time_agrees_with_wait4(real):
    run = real('wait(); burn(0.3); say("burnt", time.process_time()); wait()')
    run.tree.read()
    run.go()
    by_program = float(run.hear("burnt"))
    alive = run.tree.read()["job_cpu_s"]
    assert alive == pytest.approx(by_program, abs=2 * TICK_S)
    run.go()
    by_wait4 = float(run.hear("reaped"))
    ended = run.tree.read()
    assert ended["job_cpu_s"] == pytest.approx(by_wait4, abs=2 * TICK_S)
    assert ended["job_processes"] == 0


def test_real_orphans_are_counted_alive_and_ended(real):
    program = """
        if os.fork() == 0:
            if os.fork() == 0:
                wait(); burn(0.2); say("burnt", os.getpid()); wait(); os._exit(0)
            os._exit(0)
        os.wait()
        say("waited")
        signal.pause()
    """
    run = real(program)
    run.hear("waited")
    run.go()
    orphan = int(run.hear("burnt"))
    readings = run.tree.read()
    assert run.tree.pids == {run.pids[0], orphan}
    assert readings["job_cpu_s"] >= 0.2 - 2 * TICK_S
    run.go()
    run.hear("reaped")
    after = run.tree.read()
    assert run.tree.pids == {run.pids[0]}
    assert after["job_cpu_s"] >= readings["job_cpu_s"]


def test_real_bytes_agree_through_children_and_supervisor(real, tmp_path: Path):
    program = """
        path = sys.argv[2]
        def put(size):
            with open(path, "ab", buffering=0) as file: file.write(bytes(size))
        wait()
        put(1_000_000)
        if os.fork() == 0:
            put(2_000_000)
            if os.fork() == 0:
                put(4_000_000); os._exit(0)
            os.wait(); os._exit(0)
        os.wait()
        if os.fork() == 0:
            if os.fork() == 0:
                put(8_000_000); os._exit(0)
            os._exit(0)  # the supervisor waits for the one that wrote
        os.wait()
        wait()
    """
    run = real(program, 2, str(tmp_path / "file"))
    before = run.tree.read()
    run.go()
    run.hear("reaped")
    after = run.tree.read()
    # The supervisor has said "reaped" in the meantime; that is not the program's.
    assert after["job_write_calls_bytes"] - before["job_write_calls_bytes"] == 15_000_000
    run.go()
    run.hear("reaped")
    end = run.tree.read()
    assert end["job_processes"] == 0
    assert end["job_write_calls_bytes"] == after["job_write_calls_bytes"]
    assert (tmp_path / "file").stat().st_size == 15_000_000


def test_real_children_without_a_waiting_parent_stay_counted(real):
    program = """
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        child = os.fork()
        if child == 0:
            burn(0.2); say("burnt"); wait(); os._exit(0)
        try: os.wait()
        except ChildProcessError: pass
        say("gone"); wait(); burn(0.1); say("more"); wait()
    """
    run = real(program)
    run.hear("burnt")
    before = run.tree.read()["job_cpu_s"]
    run.go()
    run.hear("gone")
    run.tree.read()  # its parent may hear of the end while it is still listed
    gone = run.tree.read()["job_cpu_s"]
    run.go()
    run.hear("more")
    more = run.tree.read()["job_cpu_s"]
    assert before >= 0.2 - 2 * TICK_S
    assert before <= gone
    assert more >= gone + 0.1 - 2 * TICK_S


def test_real_threads_and_run_queue(real):
    program = """
        import threading
        stop = threading.Event()
        for _ in range(3): threading.Thread(target=stop.wait, daemon=True).start()
        say("ready"); wait()
    """
    run = real(program)
    run.hear("ready")
    readings = run.tree.read()
    assert readings["job_threads"] == 4
    assert readings["job_processes"] == 1
    assert 0 <= readings["job_runnable_threads"] <= 4
    assert readings["job_open_files"] >= 3
    assert readings["job_resident_bytes"] > readings["job_shared_bytes"] > 0


def test_real_program_is_followed_after_its_supervisor_was_killed(real):
    run = real('wait(); burn(0.1); say("burnt"); wait()')
    run.tree.read()
    run.process.kill()
    run.process.wait()
    run.go()
    run.hear("burnt")
    readings = run.tree.read()
    assert run.tree.pids == {run.pids[0]}
    assert readings["job_cpu_s"] >= 0.1 - 2 * TICK_S
