"""The recorder of `teho always`: one for each job and node, and never in the way of the job."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_disk import fill, small_disk

from support import TEHO, wait_for
from teho.model.run import Run, RunState
from teho.store.read import read_run, run_state

JOB = f"{time.time_ns()}"
SCARCE = """\
from teho.config.settings import load_settings
from teho.observe import automatic

class Memory:
    limit_bytes = 1 << 30
    free = iter([{free}])

    def __init__(self, *_): pass

    def read(self):
        return {{"job_memory_bytes": self.limit_bytes - (next(self.free, 0) << 20)}}

automatic.MemoryCgroup = Memory
automatic.record_automatically(load_settings(), ("teho",))
"""
WITH_QUOTA = """\
import shutil
from types import SimpleNamespace

from teho.cli import main

shutil.disk_usage = lambda _: SimpleNamespace(free=2**40)
main(["record-job"])
"""
"""With a quota, a disk has free space, but refuses to write."""


@pytest.fixture
def env() -> dict[str, str]:
    return {
        **os.environ,
        "SLURM_JOB_ID": JOB, "SLURM_JOB_NODELIST": "n1", "SLURMD_NODENAME": "n1",
        "SLURM_JOB_NAME": "night", "TEHO_EVERY": "100ms",
    }  # fmt: skip


@pytest.fixture
def job(env: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Return a process of the job, which ends when its input is closed."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, env=env) as process:
        yield process
        process.kill()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 4 MiB; return its folder."""
    folder = tmp_path / "disk"
    folder.mkdir()
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(small_disk(folder, 4))
        except OSError as error:
            pytest.skip(f"no file system can be mounted here: {error}")
        yield folder


def recorder(env: dict[str, str], *argv: str) -> subprocess.Popen[str]:
    """Start a recorder as a job does: its shell waits for it, and is not a process of the job."""
    return subprocess.Popen(
        ["sh", "-c", '"$@"; exit $?', "sh", *(argv or [*TEHO, "record-job"])],
        env=env | {"TEHO_RECORDER": JOB}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def pid_of(shell: subprocess.Popen[str]) -> int:
    """Return the process id of the recorder."""
    return int(Path(f"/proc/{shell.pid}/task/{shell.pid}/children").read_text())


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    said = process.communicate(timeout=60)[1]
    return process.returncode, said


def runs(home: Path) -> list[Path]:
    return sorted(home.glob("runs/[!.]*"))


def recorded(home: Path) -> Run:
    [directory] = runs(home)
    run = read_run(directory)
    assert run_state(run, directory) is RunState.INTERRUPTED
    return run


def test_one_recorder_records_the_job_until_its_end(
    env: dict[str, str], job: subprocess.Popen[bytes], home: Path
) -> None:
    first = recorder(env)
    wait_for(lambda: [*home.glob("runs/*/live/*.arrows")])
    adjusted = Path(f"/proc/{pid_of(first)}/oom_score_adj").read_text().strip()
    assert adjusted == "1000"
    assert ended(recorder(env)) == (0, "")
    job.communicate()
    assert ended(first) == (0, "")
    run = recorded(home)
    assert (run.is_automatic, run.command, run.end) == (True, ("night",), None)
    [node] = run.nodes
    assert (node.name, node.sealed, node.allocation.job_id) == ("n1", True, JOB)


def test_a_recorder_that_is_killed_with_its_job_leaves_a_report(
    env: dict[str, str], job: subprocess.Popen[bytes], home: Path
) -> None:
    process = recorder(env)
    wait_for(lambda: sum(path.stat().st_size for path in home.glob("runs/*/live/*")) > 10_000)
    os.kill(pid_of(process), signal.SIGKILL)
    process.communicate()
    assert not recorded(home).nodes[0].sealed
    report = subprocess.run(
        [*TEHO, "report"], env=env | {"PATH": "/bin"}, capture_output=True, text=True, check=True
    )
    assert "not known, the recorder ended with the job" in " ".join(report.stdout.split())
    listed = subprocess.run([*TEHO, "list"], capture_output=True, text=True, check=True)
    assert "job ended" in listed.stdout


def test_a_recorder_ends_if_the_memory_of_the_job_becomes_scarce(
    env: dict[str, str], job: subprocess.Popen[bytes], home: Path
) -> None:
    free = "300, 300, 300, 200"
    assert ended(recorder(env, sys.executable, "-c", SCARCE.format(free=free))) == (0, "")
    assert recorded(home).nodes[0].sealed
    assert job.poll() is None


def test_a_recorder_does_not_start_if_memory_is_scarce(env: dict[str, str], home: Path) -> None:
    code, said = ended(recorder(env, sys.executable, "-c", SCARCE.format(free="255")))
    assert code == 1
    assert "too little memory" in said
    assert runs(home) == []


def test_a_recorder_does_not_start_if_the_disk_is_nearly_full(
    env: dict[str, str], home: Path
) -> None:
    full = (
        "import shutil\nfrom types import SimpleNamespace\n"
        "shutil.disk_usage = lambda _: SimpleNamespace(free=2 ** 29)\n"
    )
    code, said = ended(recorder(env, sys.executable, "-c", full + SCARCE.format(free="900")))
    assert code == 1
    assert "only 512 MiB are free on the disk of the recordings" in said
    assert runs(home) == []


def test_a_recorder_does_not_start_on_a_full_disk(
    env: dict[str, str], disk: Path, job: subprocess.Popen[bytes]
) -> None:
    fill(disk)
    env["TEHO_HOME"] = str(disk / "home")
    code, said = ended(recorder(env))
    assert (code, job.poll()) == (2, None)
    assert "only 0 B are free on the disk of the recordings" in said
    code, said = ended(recorder(env, sys.executable, "-c", WITH_QUOTA))
    assert (code, job.poll()) == (2, None)
    assert "No space left on device" in said
    assert len(said.splitlines()) == 1
    assert runs(disk / "home") == []


@pytest.mark.parametrize("has_space_again", [True, False])
def test_a_disk_that_becomes_full_during_the_recording(
    env: dict[str, str], disk: Path, job: subprocess.Popen[bytes], has_space_again: bool
) -> None:
    env["TEHO_HOME"] = str(disk / "home")
    process = recorder(env, sys.executable, "-c", WITH_QUOTA)
    wait_for(lambda: [*disk.glob("home/runs/*/live/*.arrows")])
    data = fill(disk)
    time.sleep(2)  # the recorder writes once per second
    assert (process.poll(), job.poll()) == (None, None)
    if has_space_again:
        data.unlink()
    job.communicate()
    assert ended(process) == (0, "")
    (node,) = recorded(disk / "home").nodes
    assert node.sealed is has_space_again
    if has_space_again:
        assert any("No space left on device" in trouble.what for trouble in node.troubles)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"SLURM_JOB_ID": ""}, "this machine runs no job"),
        ({"SLURM_JOB_NODELIST": "n2"}, "this machine runs no job"),
        ({"SLURM_JOB_NODELIST": "n[1-"}, "n[1-"),
        ({"TEHO_HOME": "/dev/full/x"}, "Not a directory"),
        ({"TEHO_KEEP_GB": "much"}, "TEHO_KEEP_GB: 'much'"),
    ],
)
def test_why_nothing_is_recorded(
    env: dict[str, str], home: Path, changes: dict[str, str], said: str
) -> None:
    code, printed = ended(recorder(env | changes))
    assert code == 2
    assert said in printed
    assert "Traceback" not in printed
    assert len(printed.splitlines()) == 1
    assert runs(home) == []
