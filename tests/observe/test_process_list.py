"""The list of the program's processes for viewers."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time

import pytest

from support import wait_for
from teho.observe import process_list
from teho.observe.process_list import ProcessList


def test_a_process_that_computes_is_first() -> None:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    idle = subprocess.Popen(["sleep", "60"])
    try:
        processes = ProcessList()
        pids = [idle.pid, busy.pid]
        first = processes.read(pids, time.monotonic())
        assert [one.cpu_percent for one in first] == [None, None]

        def shares() -> list[tuple[int, float]]:
            time.sleep(0.1)
            found = processes.read(pids, time.monotonic())
            return [(one.pid, one.cpu_percent or 0.0) for one in found]

        wait_for(lambda: (shares() or [(0, 0.0)])[0][1] > 0)
        busiest = processes.read(pids, time.monotonic())
        assert {one.pid for one in busiest} == set(pids)
        by_pid = {one.pid: one for one in busiest}
        assert by_pid[idle.pid].command == "sleep 60"
        assert by_pid[idle.pid].parent == os.getpid()
        assert by_pid[busy.pid].resident_bytes > 1_000_000
        assert by_pid[busy.pid].threads == 1
    finally:
        for process in (busy, idle):
            process.kill()
            process.wait()


def test_a_process_that_has_ended_is_left_out() -> None:
    ended = subprocess.Popen(["true"])
    wait_for(lambda: ended.poll() is not None)
    assert ProcessList().read([ended.pid], 1.0) == []


def test_secrets_are_masked() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)", "--token", "hunter2"]
    )
    try:

        def command() -> str:
            (found,) = ProcessList().read([process.pid], 1.0)
            return found.command

        wait_for(lambda: "--token" in command())  # until it has executed Python
        assert "hunter2" not in command()
    finally:
        process.kill()
        process.wait()


def test_thousands_of_processes_are_read_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    monkeypatch.setattr(process_list, "read_stat", read.append)
    processes, pids = ProcessList(), range(1, 2561)
    for second in range(20):
        processes.read(pids, float(second))
    assert len(read) == 2 * len(pids)  # once in 10 s


def test_what_cannot_be_read_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(process_list, "read_stat", refuse)
    assert ProcessList().read([1], 0.0) == []
