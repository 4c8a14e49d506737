"""Read a job's share of this node from Grid Engine's variables.

qsub(1) and submit(1) document them under ENVIRONMENTAL VARIABLES.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from teho.errors import InputError
from teho.schedulers.hostlist import parse_pe_hostfile
from teho.schedulers.site import find_site, with_gpus
from teho.schedulers.site_types import Site
from teho.schedulers.task import job_id
from teho.schedulers.variables import Variables
from teho.units import MIB

__all__ = ["read_job"]

_PE_HOSTFILE_BYTES = 1 << 20


def read_job(variables: Variables) -> tuple[dict[str, Any], int | None] | None:
    """Return the facts of the job, and its memory in bytes if that comes with its GPUs.

    None: not in a Grid Engine job.
    """
    if not (variables.text("JOB_ID") and variables.named("SGE_")):
        return None
    inherited = variables.is_inherited
    # On an inherited node, NSLOTS and NHOSTS only count this node, and the job's name is `petask`.
    slots = {} if inherited else _slots_by_host(variables)
    own_slots, gpus, site = _slots_here(variables, slots), _gpus(variables), _site(variables)
    cores = with_gpus(site, gpus, own_slots)
    memory_bytes = site["memory_with_gpu_mib"] * MIB * gpus if site and gpus else 0
    came = {"cores": cores != own_slots, "memory": memory_bytes > 0}
    nodes = None if inherited else len(slots) or variables.count("NHOSTS")
    facts = {
        "scheduler": "grid_engine",
        "job_id": job_id(variables.environment),
        "job_name": None if inherited else variables.text("JOB_NAME"),
        "cluster": variables.text("SGE_CLUSTER_NAME"),
        "partition": variables.text("QUEUE"),
        "account": variables.text("SGE_ACCOUNT"),
        "node_count": nodes,
        "node_list": ",".join(slots) or None,
        "cores_asked": cores,
        "gpus_held": gpus,
        "with_gpus": tuple(what for what, is_so in came.items() if is_so),
    }
    return facts, memory_bytes or None


def _site(variables: Variables) -> Site | None:
    """Return the site of this node. None: unknown."""
    try:
        return find_site(variables.environment, os.uname().nodename)
    except InputError as error:
        variables.notes.append(f"{error}.")
        return None


def _slots_here(variables: Variables, slots: dict[str, int]) -> int | None:
    """Return the slots on this host from the host file, or all slots if the job has one host."""
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


def _slots_by_host(variables: Variables) -> dict[str, int]:
    """Read PE_HOSTFILE. Each mistake in it becomes a note."""
    name = variables.text("PE_HOSTFILE")
    if name is None:
        return {}
    try:
        # Reading a pipe or a device may never end.
        if not Path(name).is_file():
            variables.notes.append(f"PE_HOSTFILE {name[:60]!r} is not a file.")
            return {}
        with Path(name).open(encoding="utf-8", errors="replace") as file:
            slots, strange = parse_pe_hostfile(file.read(_PE_HOSTFILE_BYTES))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        variables.notes.append(f"PE_HOSTFILE {name[:60]!r} cannot be read: {reason}.")
        return {}
    variables.notes += [f"PE_HOSTFILE has a line that is not valid: {line!r}." for line in strange]
    return slots


def _gpus(variables: Variables) -> int | None:
    """Return the number of GPUs in a resource map (`SGE_HGR_gpu=0 1`), else of visible GPUs."""
    for name in variables.named("SGE_HGR_"):
        if re.search("gpu|cuda", name, re.IGNORECASE):
            granted = variables.text(name)
            if granted:
                return len(granted.split())
    if variables.text("CUDA_VISIBLE_DEVICES") in {"-1", "NoDevFiles"}:
        return 0
    return variables.items("CUDA_VISIBLE_DEVICES")
