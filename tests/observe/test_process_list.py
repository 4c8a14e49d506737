"""The list of the program's processes for viewers."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time

import pytest

from other_users import ALICE, root
from support import wait_for
from teho.model.device import GpuDetails, GpuProcess, GpuState
from teho.observe import process_list
from teho.observe.process_list import ProcessList


def on_gpu(processes: dict[int, GpuProcess]) -> GpuDetails:
    return GpuDetails(GpuState(p_state=0), processes)


def owner_of(user: int | None) -> int | str | None:
    """Return the owner of a process that this user, or this process's user, has started."""
    process = subprocess.Popen(["sleep", "60"], user=user)
    try:
        (found,) = ProcessList().read([process.pid], 1.0, {})
        return found.owner
    finally:
        process.kill()
        process.wait()


def test_an_own_process_has_no_id_of_its_user() -> None:
    assert owner_of(None) == "own"


@root
def test_a_process_of_another_user_has_the_id_that_the_kernel_gives() -> None:
    assert owner_of(ALICE) == ALICE


@root
def test_an_id_of_a_user_namespace_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_list, "read_text", lambda _: "0 1000 1")
    assert owner_of(ALICE) == "other"
    assert owner_of(None) == "own"


def test_a_command_line_is_searched_for_secrets_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[list[str]] = []
    monkeypatch.setattr(
        process_list, "masked_command", lambda words: (searched.append(words), words)[1]
    )
    process_list.command_text.cache_clear()
    try:
        processes = ProcessList()
        for second in range(3):
            assert processes.read([os.getpid()], float(second), {})
    finally:
        process_list.command_text.cache_clear()
    assert len(searched) == 1


def test_a_process_that_computes_is_first() -> None:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    idle = subprocess.Popen(["sleep", "60"])
    try:
        processes = ProcessList()
        pids = [idle.pid, busy.pid]
        first = processes.read(pids, time.monotonic(), {})
        assert [one.cpu_percent for one in first] == [None, None]

        def shares() -> list[tuple[int, float]]:
            time.sleep(0.1)
            found = processes.read(pids, time.monotonic(), {})
            return [(one.pid, one.cpu_percent or 0.0) for one in found]

        wait_for(lambda: (shares() or [(0, 0.0)])[0][1] > 0)
        busiest = processes.read(pids, time.monotonic(), {})
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
    assert ProcessList().read([ended.pid], 1.0, {}) == []


def test_secrets_are_masked() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)", "--token", "hunter2"]
    )
    try:

        def command() -> str:
            (found,) = ProcessList().read([process.pid], 1.0, {})
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
        processes.read(pids, float(second), {})
    assert len(read) == 2 * len(pids)  # once in 10 s


def test_what_cannot_be_read_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(process_list, "read_stat", refuse)
    assert ProcessList().read([1], 0.0, {}) == []


def test_each_process_has_its_rank_and_its_memory_on_each_gpu() -> None:
    torchrun = {"TORCHELASTIC_RUN_ID": "x", "RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1"}
    torchrun |= {"LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "1", "MASTER_ADDR": "a", "MASTER_PORT": "1"}
    long = {f"VARIABLE_{number}": "x" * 100 for number in range(100)}
    ranked = subprocess.Popen(["sleep", "60"], env={**long, **os.environ, **torchrun})
    alone = subprocess.Popen(["sleep", "60"], env={"PATH": os.environ["PATH"]})
    pids = [ranked.pid, alone.pid]
    try:
        wait_for(
            lambda: [one.command for one in ProcessList().read(pids, 1.0, {})] == 2 * ["sleep 60"]
        )
        gpus = {
            "GPU-0": on_gpu({ranked.pid: GpuProcess(7e9, ("MPS", "compute")), 1: GpuProcess(1e9)}),
            "GPU-1": on_gpu({ranked.pid: GpuProcess(None, ("graphics",))}),
            "GPU-2": on_gpu({}),
        }
        found = {one.pid: one for one in ProcessList().read(pids, 1.0, gpus)}
        assert found[ranked.pid].rank == 3
        assert found[ranked.pid].gpu_memory_bytes == {"GPU-0": 7e9, "GPU-1": None}
        assert found[ranked.pid].gpu_types == {
            "GPU-0": ("MPS", "compute"), "GPU-1": ("graphics",)
        }  # fmt: skip
        assert found[alone.pid].rank is None
        assert found[alone.pid].gpu_memory_bytes == {}
    finally:
        for process in (ranked, alone):
            process.kill()
            process.wait()


def test_processes_on_a_gpu_are_always_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_list, "_MOST", 1)
    others = [subprocess.Popen(["sleep", "60"]) for _ in range(3)]
    try:
        pids = [process.pid for process in others]
        gpus = {"GPU-0": on_gpu({pids[2]: GpuProcess(1e9)})}
        (found,) = ProcessList().read(pids, 1.0, gpus)
        assert found.pid == pids[2]
    finally:
        for process in others:
            process.kill()
            process.wait()
