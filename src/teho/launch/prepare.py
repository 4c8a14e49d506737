"""Prepare one task before its program starts: ranks, cores, GPUs, caches and variables."""

from __future__ import annotations

import os

from teho.errors import InputError
from teho.launch.binding import bind
from teho.launch.caches import find_caches
from teho.launch.containers import container_variables, is_container, is_inside
from teho.launch.gpus import find_gpus
from teho.launch.variables import (
    inner_processes,
    jax_devices,
    meeting_place,
    rank_variables,
    starts_torchrun,
    thread_variables,
    torchrun_variables,
)
from teho.schedulers.hostlist import is_number
from teho.schedulers.site import find_generation, find_site
from teho.schedulers.task import at_rank, is_batch_script, read_task, record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from teho.launch.binding import RankBinding
    from teho.launch.caches import Caches
    from teho.launch.gpus import Gpus
    from teho.launch.options import Options
    from teho.schedulers.site_types import Site
    from teho.schedulers.task import Task

__all__ = ["Launch", "prepare", "prepare_task"]

_LAST_PORT = 65_535


@record
class Launch:
    """The set-up of one task before its program starts."""

    task: Task
    binding: RankBinding
    gpus: Gpus
    caches: Caches
    site: Site | None
    variables: dict[str, str]
    """Variables to add to the environment."""
    port: int | None
    """Port for the other tasks. None: they do not connect to this task, or it is in use."""
    notes: list[str]
    """Notes for the user, one sentence each."""


def prepare(
    options: Options,
    environment: Mapping[str, str],
    host: str,
    mine: frozenset[int],
    unusable: Mapping[str, str] | None = None,
) -> Launch:
    """Return the set-up of this task, without changing the process.

    Args:
        options: options of the user.
        environment: of this process.
        host: name of this machine.
        mine: present affinity of this process.
        unusable: folders that could not be created, and the reasons.

    Raises:
        TehoError: the environment contradicts itself, or an option is impossible.
    """
    task = read_task(environment, host)
    try:
        ready = prepare_task(task, options, environment, mine, unusable or {})
    except InputError as error:
        raise at_rank(error, task.rank, host) from None
    ready.notes += _notes(ready, options, environment)
    ready.notes += [
        f"{folder} cannot be used for caches: {why}" for folder, why in (unusable or {}).items()
    ]
    return ready


def prepare_task(
    task: Task,
    options: Options,
    environment: Mapping[str, str],
    mine: frozenset[int],
    unusable: Mapping[str, str],
) -> Launch:
    """Return the set-up of one task without notes; see `prepare`."""
    site = find_site(environment, os.uname().nodename)
    contained = is_container(options.command)
    generation = None
    if options.generation or contained or is_inside(environment):
        generation = find_generation(site, options.generation)
    gpus = find_gpus(environment)
    binding = bind(options.bind, task, gpus, site, environment, mine)
    caches = find_caches(site, generation, gpus, task, environment, unusable)
    address, port = _meeting(task, environment)
    torchrun = starts_torchrun(options.command) and task.local_size == 1
    own = _sees_own(options, gpus, site)
    if torchrun:
        variables = torchrun_variables(task, gpus, address, port, environment)
    else:
        variables = rank_variables(task, address, port)
        if gpus.names and "JAX_LOCAL_DEVICE_IDS" not in environment:
            variables["JAX_LOCAL_DEVICE_IDS"] = jax_devices(task, 1 if own else len(gpus.names))
    # If torchrun started the tasks, it already uses this port.
    is_met = task.rank == 0 and (task.size > 1 or torchrun) and task.started_by != "torchrun"
    variables |= caches.variables
    inner = inner_processes(options.command, gpus, task, environment)
    variables |= thread_variables(max(1, binding.threads // inner), environment)
    if own:
        variables[gpus.variable] = gpus.names[task.local_rank % len(gpus.names)]
    for pair in options.env:
        name, _, value = pair.partition("=")
        variables[name] = value
    if contained:
        folders = caches.directories
        variables |= container_variables(options.command, variables, folders, environment)
    return Launch(task, binding, gpus, caches, site, variables, int(port) if is_met else None, [])


def _sees_own(options: Options, gpus: Gpus, site: Site | None) -> bool:
    """Return whether a rank sees only its own GPU, not all GPUs of its node."""
    by_site = site is not None and site["gpus_visible"] == "own"
    return bool(gpus.names) and (options.gpus == "own" or (options.gpus == "auto" and by_site))


def _meeting(task: Task, environment: Mapping[str, str]) -> tuple[str, str]:
    address, port = meeting_place(task, environment)
    if not address:
        raise InputError(
            f"{task.started_by} does not report its nodes",
            "MASTER_ADDR, the host of rank 0",
            "export MASTER_ADDR before the launch (`mpirun -x MASTER_ADDR …`)",
        )
    if any(sign.isspace() or sign in '"\\' for sign in address):
        raise InputError(f"MASTER_ADDR is {address[:60]!r}", "the host of rank 0")
    # TensorFlow's workers use the following ports.
    most = _LAST_PORT - task.local_size
    if not is_number(port) or not 0 < int(port) <= most:
        raise InputError(f"MASTER_PORT is {port[:40]!r}", f"a number from 1 to {most}")
    return address, port


def _notes(ready: Launch, options: Options, environment: Mapping[str, str]) -> list[str]:
    notes = []
    task = ready.task
    tasks = environment.get("SLURM_NTASKS", "1")
    if is_batch_script(environment) and not task.started_by and tasks not in {"", "1"}:
        notes.append(
            f"only one task runs, but the job has {tasks} tasks: write `srun teho launch -- …`"
        )
    if task.local_size > 1 and starts_torchrun(options.command):
        notes.append(
            f"{task.local_size} tasks of this node start a torchrun each, but one torchrun starts "
            "all processes of a node: use --ntasks-per-node=1"
        )
    if not ready.binding.is_fine:
        notes.append(f"the cores of the tasks are not changed: {ready.binding.why_not}")
    return notes
