"""`teho launch` as a process: what its program finds, and what is said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping

from support import TEHO

HOST = os.uname().nodename
TOLD = (
    "import json, os, sys; json.dump({'pid': os.getpid(), 'parent': os.getppid(), "
    "'argv': sys.argv[1:], 'env': dict(os.environ), 'cores': sorted(os.sched_getaffinity(0))}, "
    "sys.stdout)"
)
TELL = [sys.executable, "-c", TOLD]
STEP = {
    "SLURM_JOB_ID": "1234",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NODELIST": "n1",
    "SLURM_STEP_NUM_TASKS": "2",
    "SLURM_STEP_TASKS_PER_NODE": "2",
    "SLURM_PROCID": "0",
    "SLURM_LOCALID": "0",
    "SLURM_NODEID": "0",
}


def launch(
    *words: str | bytes, env: Mapping[str, str] | None = None, **options: object
) -> subprocess.CompletedProcess[bytes]:
    options.setdefault("capture_output", True)
    return subprocess.run(
        [*TEHO, "launch", *words], env={**os.environ, **(env or {})}, timeout=60, check=False,
        **options,
    )  # fmt: skip


def told(*options: str, env: Mapping[str, str] | None = None) -> dict:
    """Return what the program found."""
    result = launch(*options, "--", *TELL, env=env)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def line(result: subprocess.CompletedProcess[bytes], code: int) -> str:
    """Return the one line that is said of a mistake."""
    assert result.returncode == code, result
    assert result.stdout == b""
    (text,) = result.stderr.decode().splitlines()
    assert text.startswith("teho: ")
    return text
