"""What the scheduler says of this job on this node, read from its environment.

Nothing is asked of the scheduler itself: the environment is there on every node of
every job, at once, and costs nothing. A value that is not as documented becomes a
note of the allocation, never an error.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from teho.errors import UnitError
from teho.model.allocation import Allocation
from teho.schedulers.hostlist import parse_pe_hostfile, qrsh_host
from teho.units import parse_bytes

__all__ = ["LOCAL_JOB", "read_allocation"]

LOCAL_JOB = "TEHO_LOCAL_JOB"
"""Variable that holds the id of a job that `teho submit --local` runs."""


_MIB = 1024**2
# No node has an exbibyte, and no file format integers without end.
_TOO_LARGE = 1 << 60
# Slurm gives a job without a time limit an end one year after its start.
_UNLIMITED_S = 365 * 86400
# slurm.h: the steps without a number of their own.
_SLURM_STEPS = {"4294967290": "interactive", "4294967291": "batch", "4294967292": "extern"}
# A larger number is no count of anything that a job has.
_COUNT = re.compile(r"\d{1,15}", re.ASCII)
_RANGE = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?", re.ASCII)
_PE_HOSTFILE_BYTES = 1 << 20


def read_allocation(
    environment: Mapping[str, str],
    cores: frozenset[int],
    cgroup_limit_bytes: int | None,
    node_memory_bytes: int | None,
    cpu_quota: float | None = None,
) -> Allocation:
    """Read the job's share of this node.

    The environment is Slurm's (sbatch(1) and srun(1), output environment variables) or
    Grid Engine's (qsub(1) and submit(1), ENVIRONMENTAL VARIABLES), or that of a job on this
    machine alone; outside of a job the scheduler is None. The memory limit is the smallest of
    the cgroup's, the request's and the node's. It never raises.

    Args:
        environment: the program's environment.
        cores: logical CPUs of the affinity.
        cgroup_limit_bytes: None for no limit, or none known.
        node_memory_bytes: memory of the whole node, None if not known.
        cpu_quota: how many CPUs' time the cgroup gives, None for no limit.
    """
    variables = _Variables(environment)
    if variables.text("SLURM_JOB_ID", "SLURM_JOBID"):
        facts, requested_bytes = _slurm(variables)
    elif variables.text("JOB_ID") and any(name.startswith("SGE_") for name in environment):
        facts, requested_bytes = _grid_engine(variables), None
    else:
        facts, requested_bytes = {}, None
    if job := variables.text(LOCAL_JOB):
        # It may run inside a scheduler's job, whose share of the node it then has.
        facts |= {"scheduler": "local", "job_id": job}
    limits = [
        (limit, -rank, source)
        for rank, (limit, source) in enumerate(
            (
                (node_memory_bytes, "node"),
                (requested_bytes, "scheduler"),
                (cgroup_limit_bytes, "cgroup"),
            )
        )
        if limit is not None
    ]
    limit, _, source = min(limits, default=(None, 0, ""))
    asked = facts.get("cores_asked")
    if cpu_quota is not None and cpu_quota < min(len(cores), asked or len(cores)):
        facts["cores_asked"] = math.ceil(cpu_quota)
        variables.notes.append(
            f"The container or cgroup has the time of {cpu_quota:g} CPUs and may run on "
            f"{len(cores)}, so CPU figures per core include others' work."
        )
    elif asked is not None and len(cores) > asked:
        variables.notes.append(
            f"The job asked for {asked} CPUs on this node but may run on {len(cores)}: it is not "
            "bound to its own, so CPU figures per core include other jobs' work."
        )
    return Allocation(
        **facts,
        cores=tuple(sorted(cores)),
        memory_limit_bytes=limit,
        memory_limit_source=source,
        notes=tuple(variables.notes),
    )


class _Variables:
    """The environment, with a note for each value that is not as documented."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.notes: list[str] = []

    def named(self, prefix: str) -> list[str]:
        """Return the names that begin so."""
        return sorted(name for name in self._environment if name.startswith(prefix))

    @property
    def is_inherited(self) -> bool:
        """Whether `qrsh -inherit` began this on another node than the job's first."""
        return qrsh_host(self._environment) != ""

    def text(self, *names: str) -> str | None:
        """Return the first of these variables that is set and not blank."""
        found = (self._environment.get(name, "").strip() for name in names)
        return next((text for text in found if text), None)

    def count(self, *names: str) -> int | None:
        """Return the first that is set, a whole number from 0."""
        return self._read(names, "a whole number", _count)

    def memory_bytes(self, *names: str) -> int | None:
        """Return the first that is set, an amount of memory; Slurm writes bare numbers of MiB."""
        return self._read(names, "a number of MiB", _mebibytes)

    def items(self, *names: str) -> int | None:
        """Return how many things the first that is set lists, such as `0,1` or `0-3`."""
        return self._read(names, "a list of GPUs such as 0,1 or 0-3", _list_length)

    def _read(
        self, names: tuple[str, ...], expected: str, parse: Callable[[str], int | None]
    ) -> int | None:
        for name in names:
            text = self.text(name)
            if text is None:
                continue
            value = parse(text)
            if value is not None:
                return value
            self.notes.append(f"{name} is {text[:60]!r}, not {expected}; it was not used.")
        return None


def _count(text: str) -> int | None:
    return int(text) if _COUNT.fullmatch(text) else None


def _mebibytes(text: str) -> int | None:
    if _COUNT.fullmatch(text):
        amount = int(text) * _MIB
        return amount if amount < _TOO_LARGE else None
    try:
        amount = parse_bytes(text[:20])
    except (UnitError, ValueError, OverflowError):
        return None
    return amount if amount < _TOO_LARGE else None


def _list_length(text: str) -> int | None:
    """Count the items of a comma-separated list, with ranges; names count one each."""
    total = 0
    for item in text.split(","):
        if match := _RANGE.fullmatch(item.strip()):
            first, last = int(match.group(1)), int(match.group(2) or match.group(1))
            if last < first:
                return None
            total += last - first + 1
        elif re.fullmatch(r"[\w.:/-]+", item.strip()):
            total += 1
        else:
            return None
    return total


def _slurm_job_id(variables: _Variables) -> str | None:
    """Return the job's id as squeue shows it: a task of an array by its array's number."""
    array, task = variables.text("SLURM_ARRAY_JOB_ID"), variables.text("SLURM_ARRAY_TASK_ID")
    return f"{array}_{task}" if array and task else variables.text("SLURM_JOB_ID", "SLURM_JOBID")


def _slurm(variables: _Variables) -> tuple[dict[str, Any], int | None]:
    """Return what Slurm tells, and the memory that the job asked for on this node."""
    step = variables.text("SLURM_STEP_ID", "SLURM_STEPID")
    cores = variables.count("SLURM_CPUS_ON_NODE")
    listed = variables.items("SLURM_JOB_GPUS")
    gpus = listed if listed is not None else variables.count("SLURM_GPUS_ON_NODE")
    if gpus is None:
        gpus = variables.items("SLURM_STEP_GPUS")
    facts = {
        "scheduler": "slurm",
        "job_id": _slurm_job_id(variables),
        "step_id": _SLURM_STEPS.get(step, step) if step else None,
        "job_name": variables.text("SLURM_JOB_NAME"),
        "cluster": variables.text("SLURM_CLUSTER_NAME"),
        "partition": variables.text("SLURM_JOB_PARTITION"),
        "account": variables.text("SLURM_JOB_ACCOUNT"),
        "node_count": variables.count("SLURM_JOB_NUM_NODES", "SLURM_NNODES"),
        "node_list": variables.text("SLURM_JOB_NODELIST", "SLURM_NODELIST"),
        "cores_asked": cores,
        "gpus_held": gpus,
        "time_limit_s": _slurm_time_limit_s(variables),
    }
    return facts, _slurm_memory_bytes(variables, cores, gpus)


def _slurm_memory_bytes(variables: _Variables, cores: int | None, gpus: int | None) -> int | None:
    """Return the request; 0 stands for all of the node's memory, which limits nothing."""
    for name, units in (
        ("SLURM_MEM_PER_NODE", 1),
        ("SLURM_MEM_PER_CPU", cores),
        ("SLURM_MEM_PER_GPU", gpus),
    ):
        amount = variables.memory_bytes(name)
        if amount and units and amount * units < _TOO_LARGE:
            return amount * units
    return None


def _slurm_time_limit_s(variables: _Variables) -> float | None:
    """Return end minus start, both in seconds since 1970; None without a limit."""
    start = variables.count("SLURM_JOB_START_TIME")
    end = variables.count("SLURM_JOB_END_TIME")
    if start is None or end is None:
        return None
    if end <= start:
        variables.notes.append("SLURM_JOB_END_TIME is not after SLURM_JOB_START_TIME.")
        return None
    return float(end - start) if end - start < _UNLIMITED_S else None


def _grid_engine(variables: _Variables) -> dict[str, Any]:
    """Return what Grid Engine tells; of memory it tells nothing."""
    job, task = variables.text("JOB_ID"), variables.text("SGE_TASK_ID")
    inherited = variables.is_inherited
    # There NSLOTS and NHOSTS count what is on that node alone, and the job's name is `petask`.
    slots = {} if inherited else _slots_by_host(variables)
    cores = _slots_here(variables, slots)
    nodes = None if inherited else len(slots) or variables.count("NHOSTS")
    return {
        "scheduler": "grid_engine",
        "job_id": f"{job}.{task}" if task and task != "undefined" else job,
        "job_name": None if inherited else variables.text("JOB_NAME"),
        "cluster": variables.text("SGE_CLUSTER_NAME"),
        "partition": variables.text("QUEUE"),
        "account": variables.text("SGE_ACCOUNT"),
        "node_count": nodes,
        "node_list": ",".join(slots) or None,
        "cores_asked": cores,
        "gpus_held": _grid_engine_gpus(variables),
    }


def _slots_here(variables: _Variables, slots: dict[str, int]) -> int | None:
    """Return the slots on this host: of the host file, or all where there is one host."""
    if not slots:
        return variables.count("NSLOTS")
    here = (variables.text("HOSTNAME") or os.uname().nodename).split(".")[0]
    found = [count for host, count in slots.items() if host.split(".")[0] == here]
    if found:
        return sum(found)
    if len(slots) == 1:
        return next(iter(slots.values()))
    variables.notes.append(f"This host, {here[:60]!r}, is not in PE_HOSTFILE.")
    return None


def _slots_by_host(variables: _Variables) -> dict[str, int]:
    """Read PE_HOSTFILE; what is wrong with it is a note."""
    name = variables.text("PE_HOSTFILE")
    if name is None:
        return {}
    try:
        # Never a pipe or a device, which might not end.
        if not Path(name).is_file():
            variables.notes.append(f"PE_HOSTFILE {name[:60]!r} is not a file.")
            return {}
        with Path(name).open(encoding="utf-8", errors="replace") as file:
            slots, strange = parse_pe_hostfile(file.read(_PE_HOSTFILE_BYTES))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        variables.notes.append(f"PE_HOSTFILE {name[:60]!r} does not read: {reason}.")
        return {}
    variables.notes += [f"PE_HOSTFILE has a line {line!r}." for line in strange]
    return slots


def _grid_engine_gpus(variables: _Variables) -> int | None:
    """Return the GPUs granted: of a resource map (`SGE_HGR_gpu=0 1`), else those visible."""
    for name in variables.named("SGE_HGR_"):
        if re.search("gpu|cuda", name, re.IGNORECASE):
            granted = variables.text(name)
            if granted:
                return len(granted.split())
    if variables.text("CUDA_VISIBLE_DEVICES") in {"-1", "NoDevFiles"}:
        return 0
    return variables.items("CUDA_VISIBLE_DEVICES")
