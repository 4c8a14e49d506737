"""What processes wait for while they use no core, over real processes."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import wait_for
from teho.model.run import IdleProcess
from teho.model.stack import State
from teho.observe import idle_waits
from teho.observe.idle_waits import IdleWaits

THREADS = """
import threading
lock = threading.Lock()
lock.acquire()
print("ready", flush=True)
lock.acquire()
"""
SERVER = """
import socket
server = socket.create_server(("127.0.0.1", 0))
print("ready", flush=True)
server.accept()
"""


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def found(process: subprocess.Popen[bytes], state: State) -> IdleProcess:
    """Return what is found of a process as soon as it is in this state."""
    results: list[IdleProcess] = []

    def is_there() -> bool:
        waits = IdleWaits()
        for elapsed_s in (1.0, 2.0, 200.0):
            waits.check({"node": {"job_cpu_s": 0.0}}, {process.pid}, elapsed_s)
        if waits.found and waits.found.processes:
            results.append(waits.found.processes[0])
        return bool(results) and results[-1].state == state.value

    try:
        wait_for(is_there, 10)
    except AssertionError:
        if not results or results[-1].state == "":
            pytest.skip("the kernel does not permit the reading of system calls")
        raise
    return results[-1]


def test_a_program_that_waits_for_a_lock(started: list[subprocess.Popen[bytes]]) -> None:
    started.append(subprocess.Popen([sys.executable, "-c", THREADS], stdin=subprocess.DEVNULL))
    one = found(started[0], State.LOCK)
    assert not one.listens
    assert not one.terminal
    assert not one.uninterruptible


def test_a_program_that_waits_for_a_pipe(
    started: list[subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    started.append(subprocess.Popen(["cat"], stdin=subprocess.PIPE))
    assert found(started[0], State.PROCESS).name == "cat"


def test_a_program_that_sleeps(started: list[subprocess.Popen[bytes]]) -> None:
    started.append(subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL))
    assert found(started[0], State.SLEEPING).name == "sleep"


def test_a_server(started: list[subprocess.Popen[bytes]]) -> None:
    started.append(subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.DEVNULL))
    assert found(started[0], State.NETWORK).listens


def test_a_program_that_waits_at_a_terminal(started: list[subprocess.Popen[bytes]]) -> None:
    ours, theirs = pty.openpty()
    try:
        started.append(subprocess.Popen(["cat"], stdin=theirs))
        assert found(started[0], State.WAITING).terminal
    finally:
        os.close(ours)
        os.close(theirs)


def test_only_the_processes_without_children_count(
    started: list[subprocess.Popen[bytes]],
) -> None:
    started.append(
        subprocess.Popen(
            ["sh", "-c", "sleep 60 & echo $!; wait"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        )
    )  # fmt: skip
    assert started[0].stdout is not None
    child = int(started[0].stdout.readline())
    waits = IdleWaits()
    for elapsed_s in (1.0, 200.0):
        waits.check({"node": {"job_cpu_s": 0.0}}, {started[0].pid, child}, elapsed_s)
    os.kill(child, 9)
    assert waits.found is not None
    assert [one.pid for one in waits.found.processes] == [child]


def test_it_reads_only_after_minutes_and_forgets_a_program_that_works_again(
    started: list[subprocess.Popen[bytes]],
) -> None:
    started.append(subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL))
    found(started[0], State.SLEEPING)  # before this, what it waits for still changes
    waits = IdleWaits()
    pids = {started[0].pid}

    def check(elapsed_s: float, cpu_s: float) -> bool:
        return waits.check({"node": {"job_cpu_s": cpu_s}}, pids, elapsed_s)

    assert not check(10.0, 40.0)
    assert not check(20.0, 40.0)
    assert not check(139.0, 40.0)
    assert check(140.0, 40.0)
    assert waits.found is not None
    assert waits.found.since_s == 20.0
    assert not check(150.0, 40.0)  # not each second
    assert check(200.0, 40.0)  # now it is known that it did not wake up
    assert not check(260.0, 40.0)  # and nothing has changed
    assert check(261.0, 41.0)
    assert waits.found is None
    assert not check(262.0, 41.0)
    assert not check(263.0, 41.0)


def test_without_a_reading_nothing_is_reported() -> None:
    assert not IdleWaits().check({}, {1}, 500.0)


RECEIVES = """
import os, threading, time
end, other = os.pipe()
def send():
    while True:
        os.write(other, b"x")
        time.sleep(0.05)
threading.Thread(target=send, daemon=True).start()
print("ready", flush=True)
while os.read(end, 1): pass
"""


@pytest.mark.parametrize(("program", "wakes_up"), [(RECEIVES, True), (THREADS, False)])
def test_a_program_that_continues_wakes_up(
    started: list[subprocess.Popen[bytes]], program: str, wakes_up: bool
) -> None:
    started.append(
        subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
    )
    assert started[0].stdout is not None
    started[0].stdout.readline()
    waits, elapsed_s = IdleWaits(), 0.0

    def check() -> bool:
        nonlocal elapsed_s
        elapsed_s += 1.0
        waits.check({"node": {"job_cpu_s": 0.0}}, {started[0].pid}, elapsed_s)
        time.sleep(0.1)
        assert waits.found is not None
        return waits.found.processes[0].wakes_up

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(idle_waits, "_FIRST_S", 0.0)
        patch.setattr(idle_waits, "_EVERY_S", 1.0)
        assert check()  # not known yet
        found = [check() for _ in range(5)]
    assert found[1:] == [wakes_up] * 4
