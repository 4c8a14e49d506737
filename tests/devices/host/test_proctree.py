from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stubs.proc_tree import FakeProc, FakeProcess, stat_line
from teho.devices.host import procstat, proctree
from teho.devices.host.procstat import parse_stat
from teho.devices.host.proctree import METRICS, ProcessTree
from teho.model.metric import METRICS_BY_NAME
from teho.model.missing import Missing, Reason

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
REAPER, ROOT, RECORDER = 10, 20, 30


@pytest.fixture
def fake(tmp_path: Path) -> FakeProc:
    fake = FakeProc(tmp_path / "proc", REAPER, ROOT)
    fake.add(FakeProcess(RECORDER, REAPER, ticks=7000, io=7000))
    return fake


def follow(fake: FakeProc) -> ProcessTree:
    tree = ProcessTree(proc=str(fake.path))
    tree.add(ROOT, REAPER, frozenset({RECORDER}))
    return tree


# --- stat ---------------------------------------------------------------------------------


@given(st.text(min_size=0, max_size=64), st.integers(0, 2**40), st.integers(0, 2**40))
def test_any_process_name_is_survived(name, ticks, children):
    line = stat_line(42, 7, name=name, ticks=(ticks, 3), children_ticks=(children, 4), threads=5)
    stat = parse_stat(line.encode("utf-8", "surrogatepass"))
    assert stat == (b"S", "7", ticks + 3, children + 4, 5, b"100")


@given(st.binary(max_size=200))
def test_what_is_no_stat_is_refused_cleanly(data):
    try:
        parse_stat(data)
    except (ValueError, UnicodeDecodeError):
        return
    assert data.count(b" ") > 10


def test_own_stat_reads():
    stat = parse_stat(Path("/proc/self/stat").read_bytes())
    assert stat.parent == str(os.getppid())
    assert not stat.is_dead


# --- who belongs to the program -----------------------------------------------------------


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


# --- what they use ------------------------------------------------------------------------

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


def test_use_that_nobody_waited_for_stays_counted(fake: FakeProc):
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


def test_runnable_threads_are_looked_at_less_often_where_there_are_many(fake: FakeProc):
    states = ["R", "S", "R", *["S"] * 67]
    fake.add(FakeProcess(100, ROOT, thread_states=states))
    tree = follow(fake)
    samples = [tree.read().get("job_runnable_threads") for _ in range(7)]
    # 71 threads: every third sample.
    assert samples == [2, None, None, 2, None, None, 2]


def test_few_threads_are_looked_at_each_time(fake: FakeProc):
    fake.processes[ROOT].state = "R"
    fake.write(ROOT)
    tree = follow(fake)
    assert [tree.read()["job_runnable_threads"] for _ in range(3)] == [1, 1, 1]


def test_open_files_are_looked_at_every_tenth_sample(fake: FakeProc):
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


# --- what cannot be read ------------------------------------------------------------------


def refuse(monkeypatch: pytest.MonkeyPatch, ending: str, error: int) -> None:
    slurp = procstat.slurp

    def refusing(path: str) -> bytes:
        if path.endswith(ending):
            raise OSError(error, os.strerror(error), path)
        return slurp(path)

    monkeypatch.setattr(procstat, "slurp", refusing)


def test_forbidden_io_is_said_and_the_rest_counts(fake: FakeProc, monkeypatch):
    fake.add(FakeProcess(21, ROOT, ticks=5))
    refuse(monkeypatch, "/21/io", errno.EACCES)
    readings = follow(fake).read()
    assert readings["job_write_bytes"].reason is Reason.FORBIDDEN
    assert readings["job_read_calls_bytes"].reason is Reason.FORBIDDEN
    assert readings["job_processes"] == 2
    assert readings["job_cpu_s"] == pytest.approx(5 * TICK_S)


def test_a_kernel_without_io_accounting_is_said(fake: FakeProc, monkeypatch):
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


def test_forbidden_open_files_are_said(fake: FakeProc, monkeypatch):
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


# --- real processes -----------------------------------------------------------------------

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


def test_real_children_that_nobody_waits_for_stay_counted(real):
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


# --- processes that descend from no supervisor --------------------------------------------


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


def test_a_node_where_nobody_came_or_went_is_not_listed_again(fake: FakeProc, monkeypatch):
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


def test_nobody_there_is_zero_and_not_a_failure(fake: FakeProc):
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


def test_a_zombie_alone_is_nobody(fake: FakeProc):
    fake.add(FakeProcess(61, 1))
    tree = of_a_job(fake, 61)
    tree.read()
    assert not tree.is_deserted
    fake.processes[61].state = "Z"
    fake.write(61)
    tree.read()
    assert tree.pids == {61}
    assert tree.is_deserted
