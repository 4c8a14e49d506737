"""Which processes are a job's: by their environment, or by their cgroup."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from teho.observe.job_processes import JobProcesses, is_recorded, new_mark

MARK = "4711.99"
STEP = {"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0"}
SCRIPT = {"SLURM_JOB_ID": "4711"}
CGROUP = "0::/slurm/uid_1000/job_{}/step_{}/user/task_0\n"


def process(folder: Path, variables: dict[str, str], cgroup: str = "0::/\n") -> str:
    (folder / "environ").write_bytes(
        b"".join(f"{key}={value}\0".encode() for key, value in variables.items())
    )
    (folder / "cgroup").write_text(cgroup)
    return str(folder)


@pytest.mark.parametrize(
    ("variables", "in_script", "from_outside"),
    [
        (STEP, True, True),
        ({"SLURM_JOBID": "4711", "SLURM_STEPID": "12"}, True, True),
        (SCRIPT, False, True),
        # The steps without a number: the script, the shell of salloc, what ssh brings.
        ({**SCRIPT, "SLURM_STEP_ID": "4294967291"}, False, True),
        ({**STEP, "SLURM_JOB_ID": "47110"}, False, False),
        ({"XSLURM_JOB_ID": "4711"}, False, False),
        ({}, False, False),
        ({**STEP, "TEHO_RECORDED_JOB": MARK}, True, True),
        ({**SCRIPT, "TEHO_RECORDED_JOB": MARK}, True, True),
        ({**STEP, "TEHO_RECORDED_JOB": "4711.98"}, False, True),
        ({**STEP, "TEHO_RECORDED_JOB": MARK, "TEHO_RECORDER": "4711"}, False, False),
    ],
)
def test_by_the_environment(
    variables: dict[str, str], in_script: bool, from_outside: bool, tmp_path: Path
) -> None:
    directory = process(tmp_path, {"PATH": "/bin", **variables, "HOME": "/root"})
    assert JobProcesses("4711", MARK)(directory) is in_script
    assert JobProcesses("4711", None)(directory) is from_outside


@pytest.mark.parametrize(
    ("task", "belongs"), [("7", True), ("70", False), ("undefined", False), (None, False)]
)
def test_by_the_variables_of_another_scheduler(
    task: str | None, belongs: bool, tmp_path: Path
) -> None:
    variables = {"JOB_ID": "4711", **({} if task is None else {"SGE_TASK_ID": task})}
    directory = process(tmp_path, variables)
    members = JobProcesses("4711", None, {"JOB_ID": "4711", "SGE_TASK_ID": "7"})
    assert members(directory) is belongs


@pytest.mark.parametrize(
    ("cgroup", "in_script", "from_outside"),
    [
        (CGROUP.format("4711", "3"), True, True),
        ("9:cpuset:/x\n4:freezer:/slurm/uid_1/job_4711/step_0\n", True, True),
        (CGROUP.format("4711", "batch"), False, True),
        ("4:freezer:/slurm/uid_1/job_4711\n", False, True),
        (CGROUP.format("47110", "3"), False, False),
    ],
)
def test_by_the_cgroup_if_the_environment_has_no_variables(
    cgroup: str, in_script: bool, from_outside: bool, tmp_path: Path
) -> None:
    directory = process(tmp_path, {}, cgroup)
    assert JobProcesses("4711", MARK)(directory) is in_script
    assert JobProcesses("4711", None)(directory) is from_outside


def test_another_users_process_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = process(tmp_path, STEP)
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    assert not JobProcesses("4711", None)(directory)


def test_a_process_that_has_ended_is_none(tmp_path: Path) -> None:
    assert not JobProcesses("4711", None)(str(tmp_path / "gone"))
    (tmp_path / "environ").mkdir()
    assert not JobProcesses("4711", None)(str(tmp_path))


def test_a_mark_counts_only_in_its_own_job() -> None:
    assert new_mark(STEP) == f"4711.{os.getpid()}"
    assert is_recorded({**STEP, "TEHO_RECORDED_JOB": MARK})
    # A job that was submitted from inside another one inherits its variables.
    assert not is_recorded({**STEP, "SLURM_JOB_ID": "4712", "TEHO_RECORDED_JOB": MARK})
    assert not is_recorded(STEP)
    assert not is_recorded({"TEHO_RECORDED_JOB": ""})
