"""Choose the cores of each task of a node: the cores of the job that are nearest to its GPU.

Every task computes the shares of all tasks of its node from the same facts, so the tasks agree
without communication.
"""

from __future__ import annotations

import os

from teho.errors import InputError
from teho.launch.gpus import parse_cores, read_text
from teho.schedulers.hostlist import is_number
from teho.schedulers.site import with_gpus
from teho.schedulers.task import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from teho.launch.gpus import Gpus
    from teho.schedulers.site_types import Site
    from teho.schedulers.task import Task

__all__ = ["RankBinding", "bind", "physical_cores", "share_cores", "step_masks"]


_MPI = frozenset({"MPI (Hydra)", "Open MPI", "PMI"})


@record
class RankBinding:
    """The cores of one task."""

    cores: tuple[int, ...]
    """Logical CPUs on which it may run, in rising order."""
    threads: int
    """Number of physical cores for its threads."""
    shared: bool = False
    """Whether other tasks of this node run on the same cores."""
    why_not: str = ""
    """Why Teho does not bind the task; empty if it does."""
    is_fine: bool = True
    """Whether the user need not change anything."""


@record
class _Pool:
    """The cores of all tasks of this node together."""

    cores: frozenset[int]
    count: int
    """Number of physical cores that certainly belong to the job."""
    shared: bool
    """Whether each task may run on all cores."""
    why_not: str = ""
    """Why the cores cannot be shared out; empty if they can."""


def bind(
    how: str,
    task: Task,
    gpus: Gpus,
    site: Site | None,
    environment: Mapping[str, str],
    mine: frozenset[int],
    top: str = "",
) -> RankBinding:
    """Return the cores for this task.

    Args:
        how: `auto`, `none`, or the name of a file with the cores of each local rank.
        task: this one.
        gpus: the visible GPUs. Local rank i uses GPU i; more ranks than GPUs start again at GPU 0.
        site: facts about the cluster.
        environment: of this process.
        mine: present affinity of this process.
        top: prefix of `/sys`; only tests set it.

    Raises:
        InputError: the file cannot be read, or it has cores of other jobs.
    """
    reserved = frozenset(site["reserved_cores"] if site and gpus.names else ())
    masks = step_masks(environment)
    if how not in {"auto", "none"}:
        return _bound(_from_file(how, task, _without(mine.union(*masks), reserved, top)), top)
    granted = _granted(task, environment, gpus, site)
    pool = _find_pool(task, environment, mine, reserved, granted, top)
    near, why_not = _wanted(task, gpus, site)
    why_not = pool.why_not or why_not
    is_fine = task.local_size == 1 or not (pool.shared or gpus.names)
    if task.local_size == 1:
        why_not = "the only task of its node has all cores of the node"
    elif not why_not and not pool.shared and not any(near):
        unknown = gpus.why_unknown or "it is not known which GPU belongs to which task"
        why_not = f"each task has its own cores, and {unknown if gpus.names else 'sees no GPU'}"
    elif not why_not and not pool.shared and _are_near(masks, near, top):
        why_not, is_fine = f"{task.started_by} has put each task near its GPU", True
    if how == "none":
        why_not, is_fine = "--bind none", True
    shares = None if why_not else share_cores(pool.cores, near, top)
    if shares:
        return _bound(shares[task.local_rank], top)
    threads = min(len(physical_cores(mine, top)), pool.count // task.local_size)
    if not why_not:
        few = len(physical_cores(pool.cores, top))
        why_not = f"{task.local_size} tasks share only {few} core{'s' * (few != 1)}"
    return RankBinding(
        tuple(sorted(mine)),
        max(1, threads),
        shared=pool.shared and task.local_size > 1,
        why_not=why_not,
        is_fine=is_fine,
    )


def _bound(cores: Iterable[int], top: str) -> RankBinding:
    """Return a binding to these cores, with a thread for each physical core."""
    own = frozenset(cores)
    return RankBinding(tuple(sorted(own)), len(physical_cores(own, top)))


def _wanted(task: Task, gpus: Gpus, site: Site | None) -> tuple[list[frozenset[int] | None], str]:
    """Return `(cores near each task's GPU, why the site's table cannot be used)`."""
    tasks = range(task.local_size)
    table = site["cores_of_gpu"] if site and gpus.names else []
    if len(table) == len(gpus.names) > 0:
        return [frozenset(table[i % len(table)]) for i in tasks], ""
    why_not = ""
    if site and table:
        why_not = (
            f"{len(gpus.names)} of the node's {len(table)} GPUs are visible, but the table "
            f"of GPUs and cores of {site['name']} is valid only for whole nodes"
        )
    if not gpus.near or not gpus.common:
        # If each task sees only its own GPU, the GPUs of the other tasks are unknown.
        return [None for _ in tasks], why_not
    return [gpus.near[i % len(gpus.near)] for i in tasks], why_not


def _find_pool(
    task: Task,
    environment: Mapping[str, str],
    mine: frozenset[int],
    reserved: frozenset[int],
    granted: int | None,
    top: str,
) -> _Pool:
    usable = _without(mine, reserved, top)
    count = len(physical_cores(usable, top))
    masks = step_masks(environment)
    if masks and mine == masks[task.local_rank % len(masks)] and len({*masks}) > 1:
        cores = mine.union(*masks)
        if len(masks) != task.local_size or sum(map(len, masks)) != len(cores):
            why_not = "the CPU masks of srun overlap, or some tasks have no mask"
            return _Pool(cores, len(physical_cores(cores, top)), shared=False, why_not=why_not)
        cores = _without(cores, reserved, top)
        uneven = len({len(mask) for mask in masks}) > 1
        why_not = "the CPU masks of srun have different sizes" if uneven else ""
        return _Pool(cores, count * task.local_size, shared=False, why_not=why_not)
    if granted is not None and count > granted:
        why_not = (
            f"on this node, the job has {granted} core{'s' * (granted != 1)}, but the system lets "
            f"it run on {count} cores. It is not known which of these cores belong to the job: the "
            "other cores may belong to other jobs"
        )
        return _Pool(usable, granted, shared=True, why_not=why_not)
    everything = granted or os.cpu_count() or 1
    fewer = task.local_size > 1 and max(len(mine), count) < everything
    if fewer and _binds(task, environment, mine):
        why_not = (
            f"{task.started_by} has bound each task itself and does not report the cores of "
            "the other tasks"
        )
        return _Pool(usable, everything, shared=False, why_not=why_not)
    return _Pool(usable, count, shared=True)


def _binds(task: Task, environment: Mapping[str, str], mine: frozenset[int]) -> bool:
    """Return whether the launcher has bound each task to its own cores."""
    if task.started_by == "Slurm":
        # With `--cpu-bind=none`, all tasks have the same mask and are not bound.
        kind = environment.get("SLURM_CPU_BIND_TYPE", "none")
        return kind not in {"", "none"} and len({*step_masks(environment)}) != 1
    if task.started_by not in _MPI:
        return False
    try:
        # The affinity of mpirun itself has the cores of all its tasks.
        return os.sched_getaffinity(os.getppid()) != mine
    except OSError:
        return True


def _granted(
    task: Task, environment: Mapping[str, str], gpus: Gpus, site: Site | None
) -> int | None:
    """Return the number of cores of the job on this node. None: unknown."""
    cores = environment.get("SLURM_CPUS_ON_NODE", "")
    if is_number(cores):
        return int(cores)
    slots = environment.get("NSLOTS", "") if environment.get("JOB_ID") else ""
    if not is_number(slots):
        return None
    # Without the variable, the GPUs of other jobs are visible too.
    own = len(gpus.names) if gpus.variable in environment else None
    # Grid Engine counts the slots of all nodes together, so they are divided.
    return with_gpus(site, own, max(1, int(slots) // (task.node_count or 1)))


def step_masks(environment: Mapping[str, str]) -> list[frozenset[int]]:
    """Return the cores to which srun has bound each task of this node; empty: it did not."""
    kind = environment.get("SLURM_CPU_BIND_TYPE", "")
    items = filter(None, environment.get("SLURM_CPU_BIND_LIST", "").split(","))
    try:
        if kind.startswith("mask_cpu"):
            return [frozenset(parse_cores(item)) for item in items]
        if kind.startswith("map_cpu"):
            return [frozenset({int(item, 0)}) for item in items]
    except (InputError, ValueError):
        pass
    return []


def _are_near(
    masks: Sequence[frozenset[int]], near: Sequence[frozenset[int] | None], top: str
) -> bool:
    """Return whether all cores that srun gave to each task are near its GPU."""
    return not any(
        wanted and any(wanted.isdisjoint(core) for core in physical_cores(mask, top))
        for mask, wanted in zip(masks, near, strict=False)
    )


def share_cores(
    pool: frozenset[int], near: Sequence[frozenset[int] | None], top: str = ""
) -> list[tuple[int, ...]] | None:
    """Share out cores: the same number to each task, near cores first. None: too few cores.

    Hyper-threads of one core stay together. The core is near if one of its threads is near. Tasks
    that want the same cores get neighbouring cores, in the order of the tasks. If no near core is
    left, a task gets a core that no task wanted.

    Args:
        pool: all cores.
        near: for each task, the cores near its GPU; None: no preference.
        top: prefix of `/sys`; only tests set it.
    """
    free = physical_cores(pool, top)
    each = len(free) // max(1, len(near))
    if each == 0:
        return None
    shares: list[list[tuple[int, ...]]] = [[] for _ in near]
    for only_near in (True, False):
        for share, wanted in zip(shares, near, strict=True):
            if only_near:
                fit = [core for core in free if wanted and not wanted.isdisjoint(core)]
            else:
                fit = free
            taken = fit[: each - len(share)]
            share.extend(taken)
            free = [core for core in free if core not in taken]
    return [tuple(sorted(thread for core in share for thread in core)) for share in shares]


def physical_cores(pool: frozenset[int], top: str = "") -> list[tuple[int, ...]]:
    """Return the logical CPUs of each physical core, in rising order."""
    if not _has_threads(top):
        return [(core,) for core in sorted(pool)]
    groups: list[tuple[int, ...]] = []
    seen: set[int] = set()
    for core in sorted(pool):
        if core not in seen:
            threads = tuple(sorted(pool & _threads_of(core, top)))
            groups.append(threads)
            seen.update(threads)
    return groups


def _without(pool: frozenset[int], reserved: frozenset[int], top: str) -> frozenset[int]:
    """Return a pool without the reserved cores and their other threads."""
    if not reserved or not _has_threads(top):
        return pool - reserved
    return frozenset(core for core in pool if reserved.isdisjoint(_threads_of(core, top)))


def _has_threads(top: str) -> bool:
    return read_text(f"{top}/sys/devices/system/cpu/smt/active").strip() == "1"


def _threads_of(core: int, top: str) -> frozenset[int]:
    """Return all logical CPUs of the physical core of one of them."""
    path = f"{top}/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list"
    return frozenset({core, *parse_cores(read_text(path))})


def _from_file(name: str, task: Task, allowed: frozenset[int]) -> list[int]:
    """Read the cores of this task. Each line is for one local rank: `0-6` or a mask `0x7f`."""
    expected = "auto, none, or a file with the cores of each local rank"
    try:
        with open(name, encoding="utf-8") as file:  # noqa: PTH123 - pathlib loads late
            lines = [line.partition("#")[0].strip() for line in file]
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "the file is not text"
        raise InputError(f"--bind {name}: {why}", expected) from None
    shares: list[list[int]] = []
    for number, line in enumerate(lines, start=1):
        if line:
            try:
                shares.append(parse_cores(line))
            except InputError as error:
                raise InputError(f"--bind {name}, line {number}: {error}") from None
    if len(shares) < task.local_size:
        raise InputError(
            f"--bind {name}: the file has {len(shares)} line{'s' * (len(shares) != 1)} with cores, "
            f"but {task.local_size} tasks run on a node",
            "a line for each local rank",
        )
    cores = shares[task.local_rank]
    strange = sorted({*cores} - allowed)
    if strange or not cores:
        which = f"core {strange[0]}" if strange else "no core"
        raise InputError(
            f"--bind {name}: local rank {task.local_rank} would run on {which}",
            f"cores of this job: {_shown(allowed)}",
        )
    return cores


def _shown(cores: frozenset[int]) -> str:
    ordered = sorted(cores)
    return ",".join(map(str, ordered[:16])) + (",…" if len(ordered) > 16 else "")
