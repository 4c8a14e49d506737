"""Tasks of a job's step, as srun starts them; the nodes are names for this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["JOB", "only_run", "start", "step_environment", "wait"]

JOB = str(os.getpid())
"""Of this process alone: tests that run beside this one have jobs too, on the same machine."""


def step_environment(
    home: Path, rank: int, *, nodes: int, per_node: int, step: str = "0"
) -> dict[str, str]:
    """Return what srun gives to one task of a step."""
    return {
        **os.environ,
        "TEHO_HOME": str(home),
        "SLURM_JOB_ID": JOB,
        "SLURM_CLUSTER_NAME": "test",
        "SLURM_STEP_ID": step,
        "SLURM_STEP_NUM_TASKS": str(nodes * per_node),
        "SLURM_STEP_NODELIST": f"n[1-{nodes}]" if nodes > 1 else "n1",
        "SLURM_STEP_TASKS_PER_NODE": f"{per_node}(x{nodes})",
        "SLURM_PROCID": str(rank),
        "SLURM_LOCALID": str(rank % per_node),
        "SLURM_NODEID": str(rank // per_node),
    }


def start(
    home: Path | Sequence[Path],
    programs: Sequence[str],
    *,
    nodes: int,
    step: str = "0",
    report: str = "none",
) -> list[subprocess.Popen[str]]:
    """Start `teho run` once for each program.

    Args:
        home: of all nodes, or one for each where they share none.
        programs: of each rank, in Python.
        nodes: how many.
        step: its number.
        report: that is printed at the end.
    """
    per_node = len(programs) // nodes
    homes = [home] * nodes if isinstance(home, Path) else list(home)
    teho = [sys.executable, "-m", "teho", "run", "--every", "100ms", "--report", report, "--"]
    return [
        subprocess.Popen(
            [*teho, sys.executable, "-c", program],
            env=step_environment(
                homes[rank // per_node], rank, nodes=nodes, per_node=per_node, step=step
            ),
            text=True,
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        for rank, program in enumerate(programs)
    ]


def wait(tasks: Sequence[subprocess.Popen[str]]) -> tuple[list[int], list[str]]:
    """Wait for all; return their exit codes and what they said on standard error."""
    said = [task.communicate(timeout=60)[1] for task in tasks]
    return [task.returncode for task in tasks], said


def only_run(home: Path) -> Path:
    """Return the directory of the one run that a home has."""
    (run,) = (home / "runs").iterdir()
    return run
