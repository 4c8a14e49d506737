"""The memory of real processes, and of a node and GPUs that are files and tables."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stubs.proc_tree import plant
from teho.experiment.memory_meter import MemoryMeter
from teho.experiment.out_of_memory import Kills
from teho.experiment.started import end_marked
from teho.model.batch_sizes import MemoryUse
from teho.model.device import Device, Reading, Readings
from teho.model.missing import Missing, Reason

MIB = 1024**2
MARK = "TEHO_TEST_MEMORY=1"
UNKNOWN = Missing(Reason.UNSUPPORTED, "not reported")


@contextmanager
def process(code: str) -> Iterator[int]:
    """Run Python code that prints a line when it is ready; yield its pid."""
    name, value = MARK.split("=")
    with subprocess.Popen(
        [sys.executable, "-c", f"{code}\nprint(flush=True)\ninput()"],
        env={**os.environ, name: value}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as running:  # fmt: skip
        assert running.stdout
        running.stdout.readline()
        yield running.pid
        end_marked(MARK)


class Gpus:
    """Two GPUs with readings by name."""

    notes = ()

    def __init__(self, *readings: tuple[Reading, Reading]) -> None:
        self.readings = list(readings)
        self.pids: frozenset[int] = frozenset()
        self.is_open = True
        self.devices = tuple(
            Device(id=f"GPU-{n}", index=n, name="A", vendor="nvidia", memory_bytes=1000 + n)
            for n in range(len(readings))
        )

    def read(self, pids: frozenset[int], *, ends: bool = False) -> Readings:
        self.pids = pids
        return {
            device.id: {"gpu_job_memory_bytes": own, "gpu_memory_used_bytes": used}
            for device, (own, used) in zip(self.devices, self.readings, strict=True)
        }

    def details(self) -> dict:
        return {}

    def alerts(self) -> list[str]:
        return []

    def close(self) -> None:
        self.is_open = False


def test_the_peak_includes_memory_that_was_freed() -> None:
    meter = MemoryMeter(None, {}, gpus=[])
    with process("a = b'x' * (200 << 20); del a; b = b'x' * (60 << 20)"):
        assert meter.sample(MARK) == ""
    assert 190 * MIB < (meter.use(on_gpu=False).host_bytes or 0) < 300 * MIB
    assert 60 * MIB < meter._now_bytes < 120 * MIB
    meter.begin()
    assert meter.use(on_gpu=False) == MemoryUse()
    meter.close()


def test_memory_that_processes_share_counts_once() -> None:
    meter = MemoryMeter(None, {}, gpus=[])
    with process("import os; a = b'x' * (200 << 20); os.fork()"):
        meter.sample(MARK)
    assert 190 * MIB < (meter.use(on_gpu=False).host_bytes or 0) < 300 * MIB


def test_the_limit_of_each_process_is_read() -> None:
    meter = MemoryMeter(None, {}, gpus=[])
    code = "import resource; resource.setrlimit(resource.RLIMIT_DATA, (10**9, 2 * 10**9))"
    with process(code):
        meter.sample(MARK)
    assert meter.use(on_gpu=False).process_limit_bytes == 10**9


@pytest.mark.parametrize(
    ("readings", "on_gpu", "found"),
    [
        ([(10, 20), (30, 40)], True, (30, 40, 1001)),
        ([(10, 20), (0, 999)], True, (10, 20, 1000)),
        ([(0, 20), (0, 40)], True, (None, None, None)),
        ([(UNKNOWN, 20), (UNKNOWN, 10)], True, (None, 20, 1000)),
        # Other programs may have used the GPU.
        ([(UNKNOWN, 20), (UNKNOWN, 10)], False, (None, None, None)),
        ([(10, UNKNOWN), (5, UNKNOWN)], True, (10, None, 1000)),
        ([(UNKNOWN, UNKNOWN)], True, (None, None, None)),
    ],
)
def test_the_fullest_gpu_counts(
    readings: list[tuple[Reading, Reading]], on_gpu: bool, found: tuple[int | None, ...]
) -> None:
    gpus = Gpus(*readings)
    meter = MemoryMeter(None, {}, gpus=[gpus])
    with process("") as pid:
        meter.sample(MARK)
        assert gpus.pids == {pid}
    use = meter.use(on_gpu=on_gpu)
    assert (use.gpu_bytes, use.gpu_used_bytes, use.gpu_total_bytes) == found
    meter.close()
    assert not gpus.is_open


def test_a_gpus_peak_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("teho.experiment.memory_meter._SAMPLE_S", 0.0)
    gpus = Gpus((700, 800))
    meter = MemoryMeter(None, {}, gpus=[gpus])
    with process(""):
        meter.sample(MARK)
        gpus.readings = [(10, 20)]
        meter.sample(MARK)
    assert meter.use(on_gpu=True).gpu_bytes == 700


def node(root: Path, *, free_kib: int, kills: int = 0) -> Path:
    return plant(root, {
        "proc/meminfo": f"MemTotal: 1000000 kB\nMemAvailable: {free_kib} kB\n",
        "proc/vmstat": f"pgfault 5\noom_kill {kills}\n",
    })  # fmt: skip


def test_a_full_node_ends_the_run(tmp_path: Path) -> None:
    meter = MemoryMeter(None, {}, node(tmp_path, free_kib=60_000), gpus=[])
    assert meter.sample(MARK) == ""
    node(tmp_path, free_kib=40_000)
    assert meter.sample(MARK) == (
        "Teho ended the program when 938 MiB of 977 MiB were in use, before the program filled "
        "the node's memory, which other programs use too"
    )


def test_the_jobs_memory_ends_the_run() -> None:
    meter = MemoryMeter(100 * MIB, {}, gpus=[])
    with process("a = b'x' * (200 << 20)"):
        assert (
            "of 100 MiB were in use, before the program filled the memory that it may use"
            in meter.sample(MARK)
        )


def test_the_jobs_cgroup_ends_the_run_and_counts_kills(tmp_path: Path) -> None:
    node(tmp_path, free_kib=10, kills=7)
    group = "sys/fs/cgroup/job_7"
    plant(tmp_path, {
        "proc/self/cgroup": "0::/job_7\n",
        "proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        f"{group}/memory.stat": "anon 5000\nshmem 0\nfile 0\n",
        f"{group}/memory.events": "oom_kill 2\n",
        f"{group}/memory.max": "10000\n",
    })  # fmt: skip
    meter = MemoryMeter(None, {"SLURM_JOB_ID": "7"}, tmp_path, gpus=[])
    assert meter.sample(MARK) == ""  # the node is full because of other jobs
    assert meter.kills() == Kills(0, 0)
    plant(tmp_path, {
        f"{group}/memory.stat": "anon 9600\nshmem 0\nfile 0\n",
        f"{group}/memory.events": "oom_kill 3\n",
    })  # fmt: skip
    node(tmp_path, free_kib=10, kills=9)
    assert "before the program filled the job's memory" in meter.sample(MARK)
    assert meter.kills() == Kills(1, 2)


def test_kills_are_not_known_without_counters(tmp_path: Path) -> None:
    assert MemoryMeter(None, {}, tmp_path, gpus=[]).kills() == Kills(None, None)


@pytest.mark.parametrize(
    ("rollup", "status", "now_kib", "peak_kib"),
    [
        ("Rss: 100 kB\nPss: 90 kB\nPss_Anon: 50 kB\nPss_Shmem: 5 kB", "VmHWM: 130 kB", 55, 85),
        ("Rss: 100 kB\nPss: 90 kB", "VmHWM: 130 kB\nRssFile: 20 kB", 70, 100),
        (None, "VmHWM: 130 kB\nVmRSS: 100 kB\nRssAnon: 60 kB\nRssShmem: 4 kB", 64, 94),
    ],
)
def test_older_kernels_report_less(
    tmp_path: Path, rollup: str | None, status: str, now_kib: int, peak_kib: int
) -> None:
    with process("") as pid:
        files = {"status": status} if rollup is None else {"status": status, "smaps_rollup": rollup}
        plant(tmp_path, {f"proc/{pid}/{name}": text for name, text in files.items()})
        meter = MemoryMeter(None, {}, tmp_path, gpus=[])
        meter.sample(MARK)
    assert meter._now_bytes == now_kib * 1024
    assert meter.use(on_gpu=False).host_bytes == peak_kib * 1024
