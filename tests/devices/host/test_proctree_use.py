"""What processes use, and what cannot be read of it."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stubs.proc_tree import PAGE, REAPER, ROOT, TICK_S, FakeProc, FakeProcess, follow
from teho.devices.host import procstat, proctree
from teho.devices.host.proctree import METRICS
from teho.model.metric import METRICS_BY_NAME
from teho.model.missing import Missing, Reason

OPERATION = st.tuples(
    st.sampled_from(["burn", "fork", "end", "read"]), st.integers(0, 10), st.integers(1, 50)
)


@settings(max_examples=40)
@given(st.lists(OPERATION, max_size=25))
def test_use_is_counted_exactly_through_any_history(operations):
    with tempfile.TemporaryDirectory() as directory:
        fake = FakeProc(Path(directory), REAPER, ROOT)
        # What a shell that became the supervisor by exec left to it.
        fake.processes[REAPER].children_ticks = fake.processes[REAPER].children_io = 900
        fake.write(REAPER)
        tree = follow(fake)
        used, next_pid = 0, 100
        for what, which, amount in [*operations, ("read", 0, 0)]:
            ours = [pid for pid in fake.processes if pid not in {1, REAPER}]
            pid = ours[which % len(ours)] if ours else None
            if what == "read":
                # The supervisor's own writing is not the program's.
                fake.processes[REAPER].io += 13
                fake.write(REAPER)
                readings = tree.read()
                assert readings["job_cpu_s"] == pytest.approx(used * TICK_S)
                assert readings["job_read_calls_bytes"] == used
                assert readings["job_write_bytes"] == 4 * used
                assert tree.pids == set(ours)
            elif pid is not None and what == "burn":
                used += amount
                fake.processes[pid].ticks += amount
                fake.processes[pid].io += amount
                fake.write(pid)
            elif pid is not None and what == "fork":
                fake.add(FakeProcess(next_pid, pid))
                next_pid += 1
            elif pid is not None:
                fake.end(pid)


def test_use_without_a_waiting_parent_stays_counted(fake: FakeProc):
    fake.add(FakeProcess(21, ROOT, ticks=80, io=80))
    tree = follow(fake)
    tree.read()
    fake.end(21, waited=False)
    assert tree.read()["job_cpu_s"] == pytest.approx(80 * TICK_S)
    fake.processes[ROOT].ticks += 5
    fake.write(ROOT)
    readings = tree.read()
    assert readings["job_cpu_s"] == pytest.approx(85 * TICK_S)
    assert readings["job_read_bytes"] == 240


def test_the_use_of_ended_children_is_counted_while_their_parent_lives(fake: FakeProc):
    fake.add(FakeProcess(21, ROOT, ticks=30))
    fake.add(FakeProcess(22, ROOT, ticks=50))
    tree = follow(fake)
    assert tree.read()["job_ended_cpu_s"] == 0.0
    fake.end(21)
    assert tree.read()["job_ended_cpu_s"] == pytest.approx(30 * TICK_S)
    fake.end(ROOT)
    # The program itself is no short process.
    assert tree.read()["job_ended_cpu_s"] == pytest.approx(30 * TICK_S)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_that_ends_during_the_reads_is_counted_once(
    fake: FakeProc, monkeypatch: pytest.MonkeyPatch, when: str
):
    fake.add(FakeProcess(21, ROOT, ticks=80))
    tree = follow(fake)
    tree.read()
    slurp, ended = procstat.slurp, []

    def end_around_reading(path: str) -> bytes:
        ours = path.endswith("/21/io") and not ended
        data = slurp(path) if ours and when == "after" else b""
        if ours:
            ended.append(path)
            fake.end(21)
        return data or slurp(path)

    monkeypatch.setattr(procstat, "slurp", end_around_reading)
    for _ in range(3):
        assert tree.read()["job_cpu_s"] == pytest.approx(80 * TICK_S)
    assert ended


def test_a_process_that_ends_between_listing_and_reading_is_not_lost(
    fake: FakeProc, monkeypatch: pytest.MonkeyPatch
):
    fake.add(FakeProcess(21, ROOT, ticks=80))
    tree = follow(fake)
    tree.read()
    slurp, ended = procstat.slurp, []

    def end_before_reading(path: str) -> bytes:
        if path.endswith("/21/stat") and not ended:
            ended.append(path)
            fake.end(21)
        return slurp(path)

    monkeypatch.setattr(procstat, "slurp", end_before_reading)
    for _ in range(3):
        assert tree.read()["job_cpu_s"] == pytest.approx(80 * TICK_S)
    assert ended


def test_memory_counts_the_largest_shared_part_once(fake: FakeProc):
    fake.add(FakeProcess(21, ROOT, resident_pages=50, shared_pages=40))
    fake.add(FakeProcess(22, ROOT, resident_pages=45, shared_pages=41))
    readings = follow(fake).read()
    assert readings["job_resident_bytes"] == (10 + 50 + 45) * PAGE
    assert readings["job_shared_bytes"] == (4 + 40 + 41) * PAGE
    assert readings["job_memory_bytes"] == (6 + 10 + 4 + 41) * PAGE


def test_a_zombie_is_no_live_process_but_its_time_counts(fake: FakeProc):
    fake.add(FakeProcess(21, ROOT, state="Z", ticks=9))
    tree = follow(fake)
    readings = tree.read()
    assert (readings["job_processes"], readings["job_threads"]) == (1, 1)
    assert readings["job_cpu_s"] == pytest.approx(9 * TICK_S)
    assert 21 in tree.pids


def test_many_runnable_threads_are_sampled_less_often(fake: FakeProc):
    states = ["R", "S", "R", *["S"] * 67]
    fake.add(FakeProcess(100, ROOT, thread_states=states))
    tree = follow(fake)
    samples = [tree.read().get("job_runnable_threads") for _ in range(7)]
    # 71 threads: every third sample.
    assert samples == [2, None, None, 2, None, None, 2]


def test_few_threads_are_sampled_each_time(fake: FakeProc):
    fake.processes[ROOT].state = "R"
    fake.write(ROOT)
    tree = follow(fake)
    assert [tree.read()["job_runnable_threads"] for _ in range(3)] == [1, 1, 1]


def test_open_files_are_counted_every_tenth_sample(fake: FakeProc):
    fake.add(FakeProcess(21, ROOT, open_files=6))
    tree = follow(fake)
    samples = [tree.read().get("job_open_files") for _ in range(11)]
    assert samples == [9, *[None] * 9, 9]


def test_all_gone_is_zero_and_not_missing(fake: FakeProc):
    tree = follow(fake)
    tree.read()
    fake.end(ROOT)
    readings = tree.read()
    assert readings["job_processes"] == readings["job_memory_bytes"] == 0
    assert not any(isinstance(value, Missing) for value in readings.values())


def refuse(monkeypatch: pytest.MonkeyPatch, ending: str, error: int) -> None:
    slurp = procstat.slurp

    def refusing(path: str) -> bytes:
        if path.endswith(ending):
            raise OSError(error, os.strerror(error), path)
        return slurp(path)

    monkeypatch.setattr(procstat, "slurp", refusing)


def test_forbidden_io_is_reported_and_the_rest_counts(fake: FakeProc, monkeypatch):
    fake.add(FakeProcess(21, ROOT, ticks=5))
    refuse(monkeypatch, "/21/io", errno.EACCES)
    readings = follow(fake).read()
    assert readings["job_write_bytes"].reason is Reason.FORBIDDEN
    assert readings["job_read_calls_bytes"].reason is Reason.FORBIDDEN
    assert readings["job_processes"] == 2
    assert readings["job_cpu_s"] == pytest.approx(5 * TICK_S)


def test_a_kernel_without_io_accounting_is_reported(fake: FakeProc, monkeypatch):
    refuse(monkeypatch, "/io", errno.ENOENT)
    readings = follow(fake).read()
    assert readings["job_write_bytes"].reason is Reason.ABSENT
    assert readings["job_processes"] == 1


def test_too_many_open_files_make_all_missing_and_not_zero(fake: FakeProc, monkeypatch):
    tree = follow(fake)
    assert tree.read()["job_processes"] == 1
    refuse(monkeypatch, f"/{ROOT}/stat", errno.EMFILE)
    readings = tree.read()
    assert set(readings) == set(METRICS)
    assert all(value.reason is Reason.FAILED for value in readings.values())


def test_forbidden_open_files_are_reported(fake: FakeProc, monkeypatch):
    listdir = os.listdir

    def refusing(path: str) -> list[str]:
        if path.endswith("/fd"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return listdir(path)

    monkeypatch.setattr(proctree.os, "listdir", refusing)
    assert follow(fake).read()["job_open_files"].reason is Reason.FORBIDDEN


@pytest.mark.parametrize(
    ("ending", "error", "lost"),
    [
        ("/100/statm", errno.ESRCH, False),
        ("/101/stat", errno.ESRCH, False),
        ("/100/statm", errno.EMFILE, True),
        ("/101/stat", errno.EMFILE, True),
    ],
)
def test_what_ends_in_the_middle_of_a_sample_is_left_out(fake, monkeypatch, ending, error, lost):
    fake.add(FakeProcess(100, ROOT, thread_states=["R", "R"]))
    refuse(monkeypatch, ending, error)
    readings = follow(fake).read()
    if lost:
        assert all(value.reason is Reason.FAILED for value in readings.values())
    else:
        assert readings["job_processes"] in {1, 2}
        assert readings["job_runnable_threads"] in {0, 1}


@pytest.mark.parametrize(("error", "lost"), [(errno.ENOENT, False), (errno.EMFILE, True)])
def test_open_files_of_a_process_that_ends_are_left_out(fake, monkeypatch, error, lost):
    fake.add(FakeProcess(21, ROOT, open_files=5))
    listdir = os.listdir

    def refusing(path: str) -> list[str]:
        if path.endswith("/21/fd"):
            raise OSError(error, os.strerror(error))
        return listdir(path)

    monkeypatch.setattr(proctree.os, "listdir", refusing)
    value = follow(fake).read()["job_open_files"]
    assert value.reason is Reason.FAILED if lost else value == 3


def test_a_program_that_ended_before_is_zero(fake: FakeProc):
    fake.end(ROOT)
    assert follow(fake).read()["job_processes"] == 0


def test_every_metric_is_one_of_the_table():
    assert all(METRICS_BY_NAME[name].scope == "node" for name in METRICS)
