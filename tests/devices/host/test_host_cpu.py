from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stubs.proc_tree import plant
from teho.devices.host.cpu import Cpu
from teho.model.missing import Reason

SHARES = {"cpu_busy_percent", "core_busy_percent", "cpu_iowait_percent"}


def proc_stat(root: Path, cores: dict[int, str], running: int = 4, ctxt: int = 1000) -> Path:
    lines = ["cpu  9 9 9 9 9 9 9 9 9 9"]
    lines += [f"cpu{core} {times}" for core, times in cores.items()]
    lines += ["intr 12 0 3", f"ctxt {ctxt}", "btime 1", "processes 7"]
    lines += [f"procs_running {running}", "procs_blocked 0"]
    return plant(root, {"proc/stat": "\n".join(lines) + "\n"})


def test_the_first_read_has_no_rates(tmp_path: Path):
    cpu = Cpu(proc_stat(tmp_path, {0: "0 0 0 0 0 0 0 0 0 0"}), (0,))
    # Of four that run, one is the reader.
    assert cpu.read() == {"runnable_tasks": 3, "context_switches": 1000, "tasks_started": 7}


def test_shares_are_of_the_jobs_own_cores_since_the_last_read(tmp_path: Path):
    zero = "0 0 0 0 0 0 0 0 0 0"
    cpu = Cpu(proc_stat(tmp_path, {0: zero, 1: zero, 2: zero, 12: zero}), (2, 12))
    cpu.read()
    #       user nice system idle iowait irq softirq steal guest guest_nice
    times = {0: "100 0 0 0 0 0 0 0 0 0", 1: "100 0 0 0 0 0 0 0 0 0"}
    times |= {2: "20 10 10 40 10 3 3 4 20 10", 12: "0 0 0 90 10 0 0 0 0 0"}
    proc_stat(tmp_path, times)
    readings = cpu.read()
    # Guest time stands inside of user and nice.
    assert readings["core_busy_percent"] == [50.0, 0.0]
    assert readings["cpu_busy_percent"] == 25.0
    assert readings["cpu_iowait_percent"] == 10.0
    # Within the same clock tick there is nothing to divide by, and nothing is lost.
    assert not SHARES & cpu.read().keys()
    times[12] = "100 0 0 90 10 0 0 0 0 0"
    times[2] = "20 10 10 140 10 3 3 4 20 10"
    proc_stat(tmp_path, times)
    assert cpu.read()["core_busy_percent"] == [0.0, 100.0]


def test_a_time_that_goes_backwards_counts_as_none(tmp_path: Path):
    cpu = Cpu(proc_stat(tmp_path, {0: "0 0 0 0 50 0 0 0 0 0"}), (0,))
    cpu.read()
    proc_stat(tmp_path, {0: "30 0 0 70 20 0 0 0 0 0"})
    readings = cpu.read()
    assert readings["cpu_busy_percent"] == 30.0
    assert readings["cpu_iowait_percent"] == 0.0


def test_a_core_that_goes_away_is_missing_until_it_is_back(tmp_path: Path):
    both = {0: "0 0 0 0 0 0 0 0 0 0", 1: "0 0 0 0 0 0 0 0 0 0"}
    cpu = Cpu(proc_stat(tmp_path, both), (0, 1))
    cpu.read()
    proc_stat(tmp_path, {0: "9 0 0 0 0 0 0 0 0 0"})
    readings = cpu.read()
    assert all(readings[name].reason is Reason.ABSENT for name in SHARES)
    assert "CPU 1" in readings["cpu_busy_percent"].detail
    assert readings["context_switches"] == 1000
    proc_stat(tmp_path, both)
    assert not SHARES & cpu.read().keys()
    proc_stat(tmp_path, {0: "1 0 0 1 0 0 0 0 0 0", 1: "2 0 0 0 0 0 0 0 0 0"})
    assert cpu.read()["core_busy_percent"] == [50.0, 100.0]


def test_no_cores_are_missing_and_not_idle(tmp_path: Path):
    readings = Cpu(proc_stat(tmp_path, {0: "0 0 0 0 0 0 0 0 0 0"}), ()).read()
    assert readings["cpu_busy_percent"].reason is Reason.ABSENT


def test_no_file_is_missing(tmp_path: Path):
    cpu = Cpu(tmp_path, (0,))
    readings = cpu.read()
    assert set(readings) == set(cpu.metrics)
    assert all(value.reason is Reason.ABSENT for value in readings.values())


def test_missing_lines_are_reported(tmp_path: Path):
    plant(tmp_path, {"proc/stat": "cpu  1 1\ncpu0 1 1 1 1 1 1 1 1 1 1"})
    readings = Cpu(tmp_path, (0,)).read()
    assert readings["context_switches"].reason is Reason.UNSUPPORTED
    assert readings["runnable_tasks"].reason is Reason.UNSUPPORTED


TIMES = st.lists(st.integers(0, 2**50), min_size=10, max_size=10)


@given(st.lists(TIMES, min_size=2, max_size=5))
def test_shares_stay_shares(tmp_path_factory, history):
    root = tmp_path_factory.mktemp("root")
    cpu = Cpu(proc_stat(root, {0: "0 0 0 0 0 0 0 0 0 0"}), (0,))
    for times in history:
        proc_stat(root, {0: " ".join(map(str, times))})
        readings = cpu.read()
        if "cpu_busy_percent" in readings:
            busy, wait = readings["cpu_busy_percent"], readings["cpu_iowait_percent"]
            assert 0 <= busy <= 100
            assert 0 <= wait <= 100
            assert busy + wait <= 100 + 1e-9


def test_no_runnable_task_is_never_negative(tmp_path: Path):
    root = proc_stat(tmp_path, {0: "0 0 0 0 0 0 0 0 0 0"}, running=0)
    assert Cpu(root, (0,)).read()["runnable_tasks"] == pytest.approx(0)
