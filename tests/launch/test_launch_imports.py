"""What `teho launch` loads before the program: ten thousand tasks start at once."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

TEHO_OWN = {
    "teho",
    "teho.cli",
    "teho.errors",
    "teho.launch",
    "teho.launch.binding",
    "teho.launch.caches",
    "teho.launch.containers",
    "teho.launch.gpus",
    "teho.launch.launch",
    "teho.launch.options",
    "teho.launch.prepare",
    "teho.schedulers.site",
    "teho.schedulers.sites",
    "teho.launch.variables",
    "teho.launchers",
    "teho.launchers.task_variables",
    "teho.process",
    "teho.process.exec_program",
    "teho.schedulers",
    "teho.schedulers.hostlist",
    "teho.schedulers.task",
    "teho.version",
}
# `os` loads `warnings` where it looks for a program on the PATH.
OF_PYTHON = {"__future__", "warnings", "_warnings", "_signal", "errno"}
STEP = {
    "SLURM_JOB_ID": "1234",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NODELIST": "n[1-2]",
    "SLURM_STEP_NUM_TASKS": "8",
    "SLURM_STEP_TASKS_PER_NODE": "4(x2)",
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "1",
    "SLURM_CPUS_ON_NODE": "4",
    "SLURM_CPU_BIND_TYPE": "mask_cpu:",
    "SLURM_CPU_BIND_LIST": "0x1,0x2,0x4,0x8",
    "TEHO_CLUSTER": "puhti",
    "ROCR_VISIBLE_DEVICES": "0,1,2,3",
}


def loaded(code: str, environment: dict[str, str]) -> set[str]:
    """Return what a Python loads from its start until it ends, or becomes another program."""
    result = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", code], env={**os.environ, **environment},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    lines = (line for line in result.stderr.splitlines() if line.startswith("import time:"))
    return {line.rpartition("|")[2].strip() for line in lines} - {"imported package"}


def loaded_by_launch(environment: dict[str, str], *words: str) -> set[str]:
    code = (
        f"import sys; sys.argv[1:] = ['launch', *{words!r}, '--', 'true']\n"
        "from teho.cli import main; main()"
    )
    return loaded(code, environment) - loaded("pass", environment)


@pytest.mark.parametrize(
    ("environment", "more"),
    [
        ({}, set()),
        (STEP, set()),
        # Rank 0 looks whether the port is free.
        ({**STEP, "SLURM_PROCID": "0", "SLURM_LOCALID": "0"}, {"_socket", "errno"}),
    ],
    ids=["alone", "rank 5", "rank 0"],
)
def test_a_launch_loads_little(tmp_path, environment: dict[str, str], more: set[str]):
    scratch = {"LOCAL_SCRATCH": str(tmp_path), "TMPDIR": str(tmp_path)}
    found = loaded_by_launch({**environment, **scratch}, "-q", "--bind", "none")
    assert {name for name in found if name.startswith("teho")} == TEHO_OWN
    assert found - TEHO_OWN <= OF_PYTHON | more
