"""Steps beside a running job's own: which nodes it has, and the command."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from teho.errors import InputError, RefusedError
from teho.model.job import JobState
from teho.schedulers.slurm.overlap import job_of_script, look_up, step_in_job

SCRIPT = {
    "SLURM_JOB_ID": "12",
    "SLURM_JOB_NODELIST": "r01g[01-03]",
    "SLURM_CLUSTER_NAME": "puhti",
    "SLURMD_NODENAME": "r01g01",
}


def test_the_script_of_a_job() -> None:
    job = job_of_script(SCRIPT, "r01g01.bullx")
    assert job is not None
    assert (job.number, job.key, job.host) == ("12", "slurm-puhti-12.batch", "r01g01")
    assert job.hosts == ("r01g01", "r01g02", "r01g03")
    assert job.others == ("r01g02", "r01g03")


def test_a_run_of_its_own_after_a_requeue() -> None:
    job = job_of_script({**SCRIPT, "SLURM_RESTART_COUNT": "2"}, "r01g01")
    assert job is not None
    assert job.key == "slurm-puhti-12.batch-r2"


@pytest.mark.parametrize("machine", ["r01g02", "r01g02.bullx"])
def test_the_shell_of_an_allocation_on_one_of_its_nodes(machine: str) -> None:
    variables = {name: value for name, value in SCRIPT.items() if name != "SLURMD_NODENAME"}
    job = job_of_script(variables, machine)
    assert job is not None
    assert job.others == ("r01g01", "r01g03")


def test_the_shell_of_an_allocation_elsewhere() -> None:
    variables = {name: value for name, value in SCRIPT.items() if name != "SLURMD_NODENAME"}
    job = job_of_script(variables, "login1")
    assert job is not None
    assert (job.host, job.others) == ("", job.hosts)


@pytest.mark.parametrize(
    "variables",
    [{}, {**SCRIPT, "SLURM_STEP_ID": "0", "SLURM_PROCID": "3"}, {"SLURM_JOB_ID": "12"}],
)
def test_what_is_no_jobs_script(variables: dict[str, str]) -> None:
    assert job_of_script(variables, "r01g01") is None


def test_the_jobs_own_variables_ask_for_nothing() -> None:
    variables = {
        **SCRIPT, "SLURM_CPUS_PER_TASK": "40", "SRUN_CPUS_PER_TASK": "40", "PATH": "/bin",
        "SLURM_CONF": "/etc/slurm.conf", "TEHO_RECORDER": "12",
    }  # fmt: skip
    command, kept = step_in_job("12", ("a", "b"), ("teho", "record-node"), variables)
    assert kept == {"PATH": "/bin", "SLURM_CONF": "/etc/slurm.conf", "TEHO_RECORDER": "12"}
    assert command[-2:] == ["teho", "record-node"]
    for option in ("--jobid=12", "--overlap", "--nodes=2", "--ntasks=2", "--nodelist=a,b"):
        assert option in command


@pytest.mark.parametrize(
    ("version", "starts"),
    [
        ("slurm 22.05.8", True),
        ("slurm-wlm 22.05.8", True),
        ("slurm 26.05.0", True),
        ("slurm 21.08.5", False),
        ("slurm-wlm 20.11.4", False),
        ("slurm 19.05.7", False),
    ],
)
def test_only_a_slurm_that_shares_everything_is_asked(
    version: str, starts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "srun", f'[ "$1" = --version ] && echo "{version}" || echo "started $8"')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    command, kept = step_in_job("12", ("a",), ("x",), os.environ)
    done = subprocess.run(command, env=kept, capture_output=True, text=True, check=False)
    assert ("started" in done.stdout) is starts
    assert (done.returncode == 0) is starts


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def row(**changed: str) -> str:
    """Return what squeue prints of a job."""
    job = {
        "number": "12", "state": "RUNNING", "uid": str(os.getuid()), "user": "me",
        "nodes": "r01g[01-02]", "reason": "None", "name": "a\nb", "script": "/home/me/job.sh",
    } | changed  # fmt: skip
    return "\x1d" + "\x1f".join(job.values()) + "\n"


@pytest.fixture
def squeue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def answer(text: str, errors: str = "", code: int = 0) -> None:
        (tmp_path / "rows").write_text(text)
        script = f"cat '{tmp_path}/rows'; printf '%s' '{errors}' >&2; exit {code}"
        program(tmp_path, "squeue", script)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    return answer


def test_a_running_job(squeue) -> None:
    squeue(row())
    job, state = look_up("12")
    assert state is JobState.RUNNING
    assert (job.number, job.hosts) == ("12", ("r01g01", "r01g02"))
    assert (job.name, job.script) == ("a\nb", "/home/me/job.sh")


def test_a_job_that_waits_has_no_nodes(squeue) -> None:
    squeue(row(state="PENDING", nodes="", reason="Priority"))
    job, state = look_up("12")
    assert (state, job.hosts) == (JobState.PENDING, ())


@pytest.mark.parametrize(
    "answer",
    [("",), ("", "slurm_load_jobs error: Invalid job id specified", 1)],
)
def test_a_job_that_is_not_known(squeue, answer: tuple) -> None:
    squeue(*answer)
    with pytest.raises(InputError, match="does not know job 12"):
        look_up("12")


def test_an_array_is_no_job(squeue) -> None:
    squeue(row(number="12") + row(number="13"))
    with pytest.raises(InputError, match="job 12 has 2 tasks"):
        look_up("12")


def test_another_users_job(squeue, monkeypatch: pytest.MonkeyPatch) -> None:
    squeue(row(uid="1001", user="alice"))
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    with pytest.raises(InputError, match="job 12 belongs to alice"):
        look_up("12")


def test_a_squeue_that_refuses(squeue) -> None:
    squeue("", "squeue: error: something else", 1)
    with pytest.raises(RefusedError, match="something else"):
        look_up("12")
