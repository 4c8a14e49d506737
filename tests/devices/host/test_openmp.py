"""How evenly OpenMP threads share their work."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from stubs.proc_tree import TICK_S, plant
from teho.devices.host import openmp
from teho.devices.host.openmp import OpenMpThreads
from teho.devices.host.procstat import read_stat, read_threads

MAPPED = "7f0000000000-7f0000001000 r-xp 00000000 08:01 99 {}\n"
UNEVEN = """
#include <time.h>
int main(void) {
    double sum = 0;
    time_t end = time(0) + 6;
    while (time(0) < end) {
#pragma omp parallel for schedule(static) num_threads(2) reduction(+ : sum)
        for (int i = 0; i < 20000; i++)
            for (int j = 0; j < i; j++) sum += 1.0 / (1 + j);
    }
    return sum < 0;
}
"""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now_s = [100.0]
    monkeypatch.setattr(openmp.time, "monotonic", lambda: now_s[0])
    return now_s


def test_the_process_with_most_use_counts(tmp_path: Path, clock: list[float]) -> None:
    library = "/usr/lib/libgomp.so.1.0.0"
    plant(tmp_path, {f"{pid}/maps": MAPPED.format(library) for pid in (21, 22)})
    threads = OpenMpThreads(str(tmp_path))
    assert threads.read({"21": {"21": 5, "23": 0}, "22": {"22": 0, "24": 0}}) == {}
    clock[0] += 2.0
    used = round(1.5 / TICK_S)
    found = threads.read({"21": {"21": 5, "23": 10}, "22": {"22": used, "24": used // 3}})
    assert found["job_busiest_thread_percent"] == pytest.approx(75.0)
    assert found["job_mean_thread_percent"] == pytest.approx(50.0)


def test_a_thread_that_has_just_started_does_not_count(tmp_path: Path, clock: list[float]) -> None:
    plant(tmp_path, {"21/maps": MAPPED.format("/opt/intel/libiomp5.so")})
    threads = OpenMpThreads(str(tmp_path))
    threads.read({"21": {"21": 0, "22": 0}})
    clock[0] += 1.0
    used = round(1 / TICK_S)
    found = threads.read({"21": {"21": used, "22": used, "23": used}})
    assert found["job_mean_thread_percent"] == pytest.approx(100.0)


@pytest.mark.parametrize("mapped", ["/usr/lib/libc.so.6", "/home/me/libomp_notes.txt"])
def test_other_programs_have_no_such_figures(
    tmp_path: Path, clock: list[float], mapped: str
) -> None:
    plant(tmp_path, {"21/maps": MAPPED.format(mapped)})
    threads = OpenMpThreads(str(tmp_path))
    for _ in range(2):
        assert threads.read({"21": {"21": 0, "22": 0}, "30": {"30": 0, "31": 0}}) == {}
        clock[0] += 1.0


def test_the_libraries_are_read_again_only_if_there_are_more_threads(
    tmp_path: Path, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    monkeypatch.setattr(openmp, "slurp", lambda path: read.append(path) or b"")
    threads = OpenMpThreads(str(tmp_path))
    for count in (2, 2, 3, 2, 3, 4):
        threads.read({"21": {str(number): 0 for number in range(count)}})
        clock[0] += 1.0
    assert len(read) == 3
    threads.read({})
    threads.read({"21": {"21": 0, "22": 0}})  # another process with this pid
    assert len(read) == 4


@pytest.mark.skipif(not shutil.which("gcc"), reason="no C compiler on this machine")
def test_a_real_loop_with_growing_iterations(tmp_path: Path) -> None:
    (tmp_path / "uneven.c").write_text(UNEVEN)
    program = tmp_path / "uneven"
    built = ["gcc", "-O1", "-fopenmp", str(tmp_path / "uneven.c"), "-o", str(program)]
    if subprocess.run(built, capture_output=True, check=False).returncode:
        pytest.skip("this gcc has no OpenMP library")
    threads = OpenMpThreads()
    with subprocess.Popen([program]) as process:
        try:
            found = {}
            deadline_s = time.monotonic() + 5
            while not found.get("job_busiest_thread_percent") and time.monotonic() < deadline_s:
                time.sleep(1)
                directory = f"/proc/{process.pid}"
                stat = read_stat(directory)
                assert stat is not None
                found = threads.read({str(process.pid): read_threads(directory, stat).ticks})
        finally:
            process.kill()
    # Of the work, the second half of the iterations has three quarters.
    share = found["job_mean_thread_percent"] / found["job_busiest_thread_percent"]
    assert share == pytest.approx(2 / 3, abs=0.15)
