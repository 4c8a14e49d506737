"""Which processes are the program's."""

from __future__ import annotations

import os
import time
from itertools import pairwise
from pathlib import Path

import pytest

from stubs.proc_tree import REAPER, RECORDER, ROOT, TICK_S, FakeProc, FakeProcess, follow
from teho.devices.host import procstat
from teho.devices.host.proctree import ProcessTree


def test_only_the_programs_processes_count(fake: FakeProc):
    fake.add(FakeProcess(21, ROOT))
    fake.add(FakeProcess(22, 21))
    fake.add(FakeProcess(31, RECORDER))
    fake.add(FakeProcess(40, 1))
    tree = follow(fake)
    assert tree.read()["job_processes"] == 3
    assert tree.pids == {ROOT, 21, 22}


def test_children_with_smaller_pids_than_their_parents_count(fake: FakeProc):
    line = [ROOT, *range(9, 1, -1)]
    for parent, pid in pairwise(line):
        fake.add(FakeProcess(pid, parent))
    tree = follow(fake)
    tree.read()
    # Parents are read first; see _Counter.
    assert list(tree._known) == [str(pid) for pid in line]


def test_an_orphan_still_counts(fake: FakeProc):
    tree = follow(fake)
    tree.read()
    fake.add(FakeProcess(21, ROOT))
    fake.add(FakeProcess(22, 21))
    fake.end(21)
    tree.read()
    assert tree.pids == {ROOT, 22}


def test_foreign_pids_are_read_once(fake: FakeProc, monkeypatch: pytest.MonkeyPatch):
    fake.add(FakeProcess(40, 1))
    read = []
    slurp = procstat.slurp
    monkeypatch.setattr(procstat, "slurp", lambda path: read.append(path) or slurp(path))
    tree = follow(fake)
    for _ in range(5):
        tree.read()
    assert read.count(f"{fake.path}/40/stat") == 1
    assert read.count(f"{fake.path}/{ROOT}/stat") >= 5


def test_a_pid_used_again_by_the_program_is_found(fake: FakeProc):
    fake.add(FakeProcess(40, 1))
    tree = follow(fake)
    tree.read()
    fake.end(40)
    tree.read()
    fake.add(FakeProcess(40, ROOT, start=500))
    tree.read()
    assert 40 in tree.pids


def test_a_pid_used_again_between_two_scans_is_found_within_a_minute(fake: FakeProc):
    fake.add(FakeProcess(40, 1))
    tree = follow(fake)
    tree.read()
    fake.end(40)
    fake.add(FakeProcess(40, ROOT, start=500))
    for _ in range(60):
        tree.read()
    assert 40 in tree.pids


def test_a_pid_used_again_by_others_is_dropped(fake: FakeProc):
    fake.add(FakeProcess(21, ROOT))
    tree = follow(fake)
    tree.read()
    fake.end(21)
    fake.add(FakeProcess(21, 1, start=900, ticks=5000))
    tree.read()
    assert tree.pids == {ROOT}
    assert tree.read()["job_cpu_s"] == 0


def test_a_parent_that_ended_during_the_scan_is_no_verdict(fake: FakeProc):
    tree = follow(fake)
    tree.read()
    child = fake.add(FakeProcess(22, 21))  # 21 is not to be seen any more
    tree.read()
    assert tree.pids == {ROOT}
    child.parent = REAPER
    fake.write(22)
    tree.read()
    assert tree.pids == {ROOT, 22}


def test_a_parent_that_stays_hidden_makes_a_foreigner(fake: FakeProc):
    fake.add(FakeProcess(51, 50))
    tree = follow(fake)
    for _ in range(3):
        tree.read()
    assert "51" in tree._foreign


def test_after_the_supervisor_the_known_are_followed_on(fake: FakeProc):
    fake.add(FakeProcess(21, ROOT, ticks=50))
    tree = follow(fake)
    before = tree.read()["job_cpu_s"]
    fake.end(REAPER)
    fake.add(FakeProcess(22, 21, ticks=30))
    readings = tree.read()
    assert tree.pids == {ROOT, 21, 22}
    assert readings["job_cpu_s"] == pytest.approx(before + 30 * TICK_S)
    # Somebody else gets the supervisor's pid: its children are not the program's.
    fake.add(FakeProcess(REAPER, 1, start=999))
    tree.read()
    fake.add(FakeProcess(60, REAPER))
    tree.read()
    assert tree.pids == {ROOT, 21, 22}


def test_the_program_counts_even_without_a_supervisor(fake: FakeProc):
    fake.end(REAPER)
    tree = follow(fake)
    tree.read()
    assert tree.pids == {ROOT}


def of_a_job(fake: FakeProc, *members: int) -> ProcessTree:
    """Return a tree in which these processes count although nobody of Teho's is above them."""
    known = {f"{fake.path}/{pid}" for pid in members}
    return ProcessTree(frozenset({RECORDER}), known.__contains__, str(fake.path))


def test_who_belongs_is_counted_with_all_descendants(fake: FakeProc):
    fake.add(FakeProcess(60, 1, ticks=100))  # the scheduler's own
    fake.add(FakeProcess(61, 60, ticks=200))
    fake.add(FakeProcess(62, 61, ticks=400))
    tree = of_a_job(fake, 61)
    readings = tree.read()
    assert tree.pids == {61, 62}
    assert readings["job_cpu_s"] == pytest.approx(600 * TICK_S)
    fake.add(FakeProcess(63, 62, ticks=10))
    tree.read()
    assert tree.pids == {61, 62, 63}


def test_processes_are_not_listed_again_if_none_began_or_ended(fake: FakeProc, monkeypatch):
    tree = follow(fake)
    listed = []
    listing = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: listed.append(path) or listing(path))

    def listings() -> int:
        listed.clear()
        tree.read()
        return listed.count(str(fake.path))

    assert [listings() for _ in range(3)] == [1, 0, 0]
    fake.add(FakeProcess(21, ROOT))
    assert [listings(), listings()] == [1, 0]
    assert tree.pids == {ROOT, 21}
    fake.end(21)
    assert [listings(), listings()] == [1, 0]
    assert tree.pids == {ROOT}
    (fake.path / "loadavg").unlink()
    assert [listings(), listings()] == [1, 1], "where it is not told, it is looked at"


def test_no_process_is_zero_and_not_a_failure(fake: FakeProc):
    readings = of_a_job(fake).read()
    assert readings["job_cpu_s"] == 0
    assert readings["job_processes"] == 0
    assert readings["job_write_bytes"] == 0


def test_the_excluded_are_not_even_asked_about(fake: FakeProc):
    fake.add(FakeProcess(31, RECORDER))
    tree = of_a_job(fake, RECORDER, 31)
    tree.read()
    assert tree.pids == frozenset()


def test_programs_and_members_are_counted_together(fake: FakeProc):
    fake.add(FakeProcess(61, 1, ticks=200))
    tree = of_a_job(fake, 61)
    tree.add(ROOT, REAPER)
    tree.read()
    assert tree.pids == {ROOT, 61}


def test_what_a_member_used_stays_counted_after_its_end(fake: FakeProc):
    fake.add(FakeProcess(61, 1, ticks=200, io=50))
    tree = of_a_job(fake, 61)
    tree.read()
    fake.end(61, waited=False)
    assert tree.read()["job_cpu_s"] == pytest.approx(200 * TICK_S)
    fake.add(FakeProcess(61, 1, start=101, ticks=30))
    assert tree.read()["job_cpu_s"] == pytest.approx(230 * TICK_S)


def test_a_young_process_is_asked_about_again(fake: FakeProc):
    """Between fork and exec it has the environment of the scheduler's daemon."""
    asked: list[str] = []
    young = int(time.clock_gettime(time.CLOCK_BOOTTIME) / TICK_S)
    fake.add(FakeProcess(61, 1, start=young))
    fake.add(FakeProcess(62, 1, start=100))

    def belongs(directory: str) -> bool:
        asked.append(Path(directory).name)
        return False

    tree = ProcessTree(belongs=belongs, proc=str(fake.path))
    tree.read()
    tree.read()
    assert asked.count("61") == 2
    assert asked.count("62") == 1


def test_a_member_whose_parent_is_hidden_is_found(fake: FakeProc):
    fake.add(FakeProcess(61, 60))  # 60 is root's, and /proc hides it
    tree = of_a_job(fake, 61)
    tree.read()
    tree.read()
    assert tree.pids == {61}


def test_a_single_zombie_is_no_process(fake: FakeProc):
    fake.add(FakeProcess(61, 1))
    tree = of_a_job(fake, 61)
    tree.read()
    assert not tree.is_deserted
    fake.processes[61].state = "Z"
    fake.write(61)
    tree.read()
    assert tree.pids == {61}
    assert tree.is_deserted
