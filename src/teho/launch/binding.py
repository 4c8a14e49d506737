"""Which cores each task of a node gets: those nearest its GPU, of the allocation's own alone.

Every task computes the shares of all tasks of its node from what they all see alike, so that
they agree without a word between them.
"""

from __future__ import annotations

import os

from teho.errors import InputError
from teho.launch.gpus import parse_cores

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from teho.launch.gpus import Gpus
    from teho.launch.site import Site
    from teho.schedulers.task import Task

__all__ = ["Binding", "bind", "physical_cores", "share_cores"]


class Binding:
    """The cores of each task of this node."""

    __slots__ = ("cores", "granted", "shared_by", "why_not")

    def __init__(self, cores: list[tuple[int, ...]], shared_by: int = 1, why_not: str = "") -> None:
        self.cores = cores
        """By local rank, in rising order."""
        self.shared_by = shared_by
        """How many tasks run on the same cores: 1 where each has its own."""
        self.why_not = why_not
        """Why they were left as they are; empty where Teho binds them."""
        self.granted: int | None = None
        """How many of these are the job's own, where it may run on others too; None: all are."""


def bind(
    how: str,
    task: Task,
    gpus: Gpus,
    site: Site | None,
    environment: Mapping[str, str],
    mine: frozenset[int],
    top: str = "",
) -> Binding:
    """Return the cores that each task of this node should have.

    Args:
        how: `auto`, `none`, or the name of a file with the cores of each local rank.
        task: this one.
        gpus: those visible here; local rank i has the i-th, and they are dealt out again
            where there are more ranks than GPUs.
        site: what is known of the cluster.
        environment: of this process.
        mine: cores that this process may run on now.
        top: what stands before `/sys`; empty but in tests.

    Raises:
        InputError: the file does not read, or names cores that are not the task's.
    """
    if how not in {"auto", "none"}:
        return Binding(_from_file(how, task, mine | _union(_step_masks(environment))))
    pool, shared, why_not = _pool(task, environment, mine)
    left = Binding([tuple(sorted(mine))] * task.local_size, task.local_size if shared else 1)
    left.granted = _granted(task, environment)
    if how == "none":
        left.why_not = "--bind none"
        return left
    if not why_not and site:
        pool -= {*site["reserved_cores"]}
    near = [gpus.near[i % len(gpus.near)] if gpus.near else None for i in range(task.local_size)]
    if not why_not and site and site["cores_of_gpu"] and gpus.names:
        table = site["cores_of_gpu"]
        near = [frozenset(table[i % len(table)]) for i in range(task.local_size)]
        if len(gpus.names) != len(table):
            why_not = (
                f"the job has {len(gpus.names)} of the node's {len(table)} GPUs, and the table of "
                f"GPUs and cores of {site['name']} holds on whole nodes alone"
            )
    if not why_not:
        why_not = _why_leave(task, gpus, near, environment, shared=shared)
    shares = None if why_not else share_cores(pool, near, top)
    if shares is None:
        left.why_not = why_not or f"{len(pool)} cores are too few for {task.local_size} tasks"
        return left
    return Binding(shares)


def _why_leave(
    task: Task,
    gpus: Gpus,
    near: Sequence[frozenset[int] | None],
    environment: Mapping[str, str],
    *,
    shared: bool,
) -> str:
    """Return why the tasks' cores are good as they are, or cannot be bettered; empty: they can."""
    if task.local_size == 1:
        return "the only task of its node has all of its cores"
    if shared:
        return ""
    if not any(near):
        return f"each has cores of its own, and {gpus.why_unknown or 'no GPU to be near to'}"
    if len(gpus.names) == 1:
        return "each sees a GPU of its own, and nobody tells which the others have"
    masks = _step_masks(environment)
    if all(not wanted or mask <= wanted for mask, wanted in zip(masks, near, strict=False)):
        return f"{task.started_by} has put each near its GPU"
    return ""


def _pool(
    task: Task, environment: Mapping[str, str], mine: frozenset[int]
) -> tuple[frozenset[int], bool, str]:
    """Return `(the tasks' cores together, whether each may use all, why they cannot be dealt)`."""
    masks = _step_masks(environment)
    if masks and mine == masks[task.local_rank % len(masks)] and len(set(masks)) > 1:
        union = _union(masks)
        if len(masks) != task.local_size or sum(map(len, masks)) != len(union):
            return union, False, "srun was told masks that overlap, or are fewer than tasks"
        if len({len(mask) for mask in masks}) > 1:
            return union, False, "srun was told masks of different sizes"
        return union, False, ""
    granted = _granted(task, environment)
    if granted is not None and len(mine) > granted:
        return mine, True, (
            f"the job has {granted} cores here and may run on {len(mine)}: which are its own "
            "is not told, and the others are other jobs'"
        )
    everything = len(mine) >= (granted or os.cpu_count() or 1)
    if task.started_by in {"Open MPI", "MPI (Hydra)", "PMI"} and not everything:
        return mine, False, f"{task.started_by} has bound each to cores of its own"
    return mine, True, ""


def _granted(task: Task, environment: Mapping[str, str]) -> int | None:
    """Return how many cores the job has on this node; None where nobody tells."""
    text = environment.get("SLURM_CPUS_ON_NODE", "")
    if not text and environment.get("JOB_ID") and (task.node_count or 1) == 1:
        text = environment.get("NSLOTS", "")
    return int(text) if text.isdigit() else None


def _step_masks(environment: Mapping[str, str]) -> list[frozenset[int]]:
    """Return the cores that srun has bound each task of this node to; none: it did not."""
    if not environment.get("SLURM_CPU_BIND_TYPE", "").startswith("mask_cpu"):
        return []
    try:
        masks = environment.get("SLURM_CPU_BIND_LIST", "").split(",")
        return [frozenset(parse_cores(mask)) for mask in masks if mask]
    except InputError:
        return []


def _union(sets: Sequence[frozenset[int]]) -> frozenset[int]:
    return frozenset().union(*sets)


def share_cores(
    pool: frozenset[int], near: Sequence[frozenset[int] | None], top: str = ""
) -> list[tuple[int, ...]] | None:
    """Deal cores out: the same number to each task, near ones first; None where they are too few.

    Hyper-threads of one core stay together. Tasks that want the same cores get neighbouring
    ones, in their order; who finds none left gets what nobody wanted.

    Args:
        pool: the cores that there are.
        near: for each task, the cores that are near to its GPU; None: all are alike.
        top: what stands before `/sys`; empty but in tests.
    """
    groups = physical_cores(pool, top)
    each = len(groups) // max(1, len(near))
    if each == 0:
        return None
    shares: list[list[tuple[int, ...]]] = [[] for _ in near]
    free = list(groups)
    for only_near in (True, False):
        for share, wanted in zip(shares, near, strict=True):
            if only_near and wanted is None:
                continue
            for group in list(free):
                if len(share) == each:
                    break
                if not only_near or (wanted and wanted.issuperset(group)):
                    share.append(group)
                    free.remove(group)
    return [tuple(sorted(core for group in share for core in group)) for share in shares]


def physical_cores(pool: frozenset[int], top: str = "") -> list[tuple[int, ...]]:
    """Return logical CPUs by the physical core that they are threads of, in rising order."""
    folder = f"{top}/sys/devices/system/cpu"
    if _read(f"{folder}/smt/active").strip() != "1":
        return [(core,) for core in sorted(pool)]
    groups: list[tuple[int, ...]] = []
    seen: set[int] = set()
    for core in sorted(pool):
        if core in seen:
            continue
        text = _read(f"{folder}/cpu{core}/topology/thread_siblings_list").strip()
        threads = tuple(sorted(pool & {core, *parse_cores(text)}))
        groups.append(threads)
        seen.update(threads)
    return groups


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:  # noqa: PTH123 - pathlib loads late
            return file.read()
    except (OSError, ValueError):
        return ""


def _from_file(name: str, task: Task, allowed: frozenset[int]) -> list[tuple[int, ...]]:
    """Read the cores of each local rank: one line each, as `0-6` or as a mask `0x7f`."""
    try:
        with open(name, encoding="utf-8") as file:  # noqa: PTH123 - pathlib loads late
            lines = [line.partition("#")[0].strip() for line in file]
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(
            f"--bind {name}: {why}", "auto, none, or a file with the cores of each local rank"
        ) from None
    shares = [tuple(parse_cores(line)) for line in lines if line]
    if len(shares) < task.local_size:
        raise InputError(
            f"--bind {name}: {len(shares)} lines with cores, and {task.local_size} tasks on a node",
            "a line for each local rank",
        )
    for rank, share in enumerate(shares[: task.local_size]):
        if strange := sorted({*share} - allowed):
            raise InputError(
                f"--bind {name}: local rank {rank} is to run on core {strange[0]}",
                f"one of this job's: {_ranges(allowed)}",
            )
    return shares[: task.local_size]


def _ranges(cores: frozenset[int]) -> str:
    ordered = sorted(cores)
    return ",".join(map(str, ordered[:16])) + (",…" if len(ordered) > 16 else "")
