"""Read a job's share of this node from Slurm's variables.

sbatch(1) and srun(1) document them as output environment variables.
"""

from __future__ import annotations

import contextlib
from datetime import datetime, timezone
from typing import Any

from teho.schedulers.task import job_id
from teho.schedulers.variables import TOO_LARGE, Variables

__all__ = ["read_job"]

# Slurm gives a job without a time limit an end one year after its start.
_UNLIMITED_S = 365 * 86400
# slurm.h: steps without a usual number.
_STEPS = {"4294967290": "interactive", "4294967291": "batch", "4294967292": "extern"}


def read_job(variables: Variables) -> tuple[dict[str, Any], int | None] | None:
    """Return the facts of the job, and the memory that it requested; None: not in a Slurm job."""
    if not variables.text("SLURM_JOB_ID", "SLURM_JOBID"):
        return None
    step = variables.text("SLURM_STEP_ID", "SLURM_STEPID")
    cores = variables.count("SLURM_CPUS_ON_NODE")
    listed = variables.items("SLURM_JOB_GPUS")
    gpus = listed if listed is not None else variables.count("SLURM_GPUS_ON_NODE")
    if gpus is None:
        gpus = variables.items("SLURM_STEP_GPUS")
    limit_s = _time_limit_s(variables)
    facts = {
        "scheduler": "slurm",
        "job_id": job_id(variables.environment),
        "step_id": _STEPS.get(step, step) if step else None,
        "job_name": variables.text("SLURM_JOB_NAME"),
        "cluster": variables.text("SLURM_CLUSTER_NAME"),
        "partition": variables.text("SLURM_JOB_PARTITION"),
        "account": variables.text("SLURM_JOB_ACCOUNT"),
        "node_count": variables.count("SLURM_JOB_NUM_NODES", "SLURM_NNODES"),
        "node_list": variables.text("SLURM_JOB_NODELIST", "SLURM_NODELIST"),
        "cores_asked": cores,
        "gpus_held": gpus,
        "time_limit_s": limit_s,
        "ends_at": _ends_at(variables) if limit_s else None,
    }
    return facts, _memory_bytes(variables, cores, gpus)


def _memory_bytes(variables: Variables, cores: int | None, gpus: int | None) -> int | None:
    """Return the requested memory. 0 means all memory of the node, which is not a limit."""
    for name, units in (
        ("SLURM_MEM_PER_NODE", 1),
        ("SLURM_MEM_PER_CPU", cores),
        ("SLURM_MEM_PER_GPU", gpus),
    ):
        amount = variables.memory_bytes(name)
        if amount and units and amount * units < TOO_LARGE:
            return amount * units
    return None


def _time_limit_s(variables: Variables) -> float | None:
    """Return end minus start, both in seconds since 1970; None: no limit."""
    start = variables.count("SLURM_JOB_START_TIME")
    end = variables.count("SLURM_JOB_END_TIME")
    if start is None or end is None:
        return None
    if end <= start:
        variables.notes.append("SLURM_JOB_END_TIME is not after SLURM_JOB_START_TIME.")
        return None
    return float(end - start) if end - start < _UNLIMITED_S else None


def _ends_at(variables: Variables) -> datetime | None:
    end = variables.count("SLURM_JOB_END_TIME")
    with contextlib.suppress(ValueError, OverflowError, OSError):  # a year that no calendar has
        return None if end is None else datetime.fromtimestamp(end, timezone.utc)
    return None
