"""`teho run --job`: what is said where a job cannot be recorded from outside."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder for stand-ins of the scheduler's commands, beside nothing but a shell's."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "cat", "printf"):
        (folder / name).symlink_to(
            f"/bin/{name}" if Path("/bin", name).exists() else f"/usr/bin/{name}"
        )
    return folder


def stand_in(programs: Path, name: str, script: str) -> None:
    (programs / name).write_text(f"#!/bin/sh\n{script}\n")
    (programs / name).chmod(0o755)


def squeue(programs: Path, state: str, nodes: str = "n1") -> None:
    row = "\\035" + "\\037".join(("7", state, str(os.getuid()), "me", nodes, "None", "x", "x.sh"))
    stand_in(programs, "squeue", f"printf '{row}\\n'")


def test_with_a_command_too(teho) -> None:
    both = teho("run", "--job", "7", "--", "true")
    assert both.returncode == 2
    assert "leave out COMMAND" in both.stderr
    neither = teho("run")
    assert neither.returncode == 2
    assert "Missing argument '-- COMMAND…'" in neither.stderr


@pytest.mark.parametrize("job", ["abc", "7.0", "-1", "7_", ""])
def test_no_jobs_number(teho, job: str) -> None:
    refused = teho("run", f"--job={job}")
    assert refused.returncode == 2
    assert "the number of a job" in refused.stderr


def test_without_slurm(teho, programs: Path) -> None:
    path = {"PATH": str(programs)}
    nothing = teho("run", "--job", "7", env=path)
    assert nothing.returncode == 2
    assert (
        "--job needs Slurm's command squeue, and this machine does not have it; expected a machine "
        "with the commands of Slurm" in nothing.stderr
    )
    stand_in(programs, "qstat", "exit 0")
    said = teho("run", "--job", "7", env=path).stderr
    assert "cannot record a running job of Grid Engine" in said


@pytest.mark.parametrize(
    ("state", "nodes", "words"),
    [
        ("PENDING", "", "job 7 has not started; expected a running job"),
        ("COMPLETED", "n1", "job 7 has ended (completed)"),
        ("TIMEOUT", "n1", "job 7 has ended (timed out)"),
    ],
)
def test_a_job_that_does_not_run(teho, programs: Path, state: str, nodes: str, words: str) -> None:
    squeue(programs, state, nodes)
    refused = teho("run", "--job", "7", env={"PATH": str(programs)})
    assert refused.returncode == 2
    assert words in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_step_that_slurm_refuses_leaves_nothing(teho, programs: Path, home: Path) -> None:
    squeue(programs, "RUNNING")
    stand_in(
        programs,
        "srun",
        '[ "$1" = --version ] && { echo slurm 22.05.8; exit; }\n'
        'echo "srun: error: Unable to create step for job 7: Access/permission denied" >&2\nexit 1',
    )
    refused = teho("run", "--job", "7", env={"PATH": str(programs)})
    assert refused.returncode == 2
    assert "job 7 was not recorded: no recorder started on n1: Unable to create" in refused.stderr
    assert list((home / "runs").iterdir()) == []


RUNNING = """<?xml version='1.0'?><job_info><queue_info><job_list state="running">
<JB_job_number>4711</JB_job_number><JB_name>train</JB_name><JB_owner>me</JB_owner><state>r</state>
<JAT_start_time>2026-11-20T13:46:18</JAT_start_time><queue_name>gpu.q@g3</queue_name>
<slots>4</slots></job_list></queue_info></job_info>"""


def test_top_of_a_running_job_of_grid_engine_says_what_can_be_seen(teho, programs: Path) -> None:
    stand_in(programs, "qstat", f"cat <<'END'\n{RUNNING}\nEND")
    stand_in(programs, "qacct", "echo 'error: job id 4712 not found' >&2; exit 1")
    path = {"PATH": str(programs)}
    shown = teho("top", "4711", env=path)
    assert shown.returncode == 2
    assert shown.stderr == (
        "teho: job 4711 runs on g3 without `teho run`, and Grid Engine cannot start a recorder in "
        "a running job. Next: `qstat -j 4711` prints what this job has used; start `teho run` in "
        "the script of the next job\n"
    )
    assert "no run is recorded" in teho("top", "4712", env=path).stderr  # no such job
