"""The environment of one task: what each framework reads, and what the site needs.

RANK and its kin tell the truth of this launch and replace what is there. Everything else is a
default: what the user has set stays.
"""

from __future__ import annotations

from teho.schedulers.hostlist import is_number
from teho.schedulers.task import rank_places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from teho.launch.gpus import Gpus
    from teho.schedulers.task import Task

__all__ = [
    "inner_processes",
    "jax_devices",
    "meeting_place",
    "rank_variables",
    "starts_torchrun",
    "thread_variables",
    "torchrun_variables",
]

_TF_CONFIG_BYTES = 100_000
"""Linux takes no longer variable than 128 KiB (MAX_ARG_STRLEN of execve(2))."""
_PROCESSES = {
    "torchrun": ("--nproc-per-node",),
    "torch.distributed.run": ("--nproc-per-node",),
    "torch.distributed.launch": ("--nproc-per-node",),
    "accelerate": ("--num-processes",),
    "accelerate.commands.launch": ("--num-processes",),
    "deepspeed": ("--num-gpus",),
}
"""Launchers that start processes on one node, and their options for how many."""


def meeting_place(task: Task, environment: Mapping[str, str]) -> tuple[str, str]:
    """Return `(MASTER_ADDR, MASTER_PORT)`: what the user has set, else of the step's first node.

    The address is empty if there are several nodes and nobody tells their names.
    """
    local = task.local_size == task.size
    address = "127.0.0.1" if local else task.first_host
    return (
        environment.get("MASTER_ADDR") or address,
        environment.get("MASTER_PORT") or str(task.port),
    )


def rank_variables(task: Task, address: str, port: str) -> dict[str, str]:
    """Return the numbers of this task as PyTorch, DeepSpeed, JAX, TensorFlow and Horovod read them.

    `LOCAL_SIZE`, `CROSS_RANK` and `CROSS_SIZE` are what DeepSpeed's own launcher sets, and the
    `HOROVOD_` names Horovod's: its "cross" counts the nodes that have this local rank too.
    `jax.distributed.initialize()` reads the address; the number and the rank it takes from Slurm
    or Open MPI, or is told by the program. TensorFlow reads `TF_CONFIG`.
    """
    rank, size = str(task.rank), str(task.size)
    local_rank, local_size = str(task.local_rank), str(task.local_size)
    nodes = task.node_count or -(-task.size // task.local_size)
    counts = task.tasks_per_node or (task.local_size,) * nodes
    across = [count > task.local_rank for count in counts]
    found = {
        "RANK": rank,
        "WORLD_SIZE": size,
        "LOCAL_RANK": local_rank,
        "LOCAL_WORLD_SIZE": local_size,
        "NODE_RANK": str(task.node_rank),
        "GROUP_RANK": str(task.node_rank),
        "MASTER_ADDR": address,
        "MASTER_PORT": port,
        "LOCAL_SIZE": local_size,
        "CROSS_RANK": str(task.node_rank),
        "CROSS_SIZE": str(nodes),
        "HOROVOD_RANK": rank,
        "HOROVOD_SIZE": size,
        "HOROVOD_LOCAL_RANK": local_rank,
        "HOROVOD_LOCAL_SIZE": local_size,
        "HOROVOD_CROSS_RANK": str(sum(across[: task.node_rank])),
        "HOROVOD_CROSS_SIZE": str(sum(across)),
        "JAX_COORDINATOR_ADDRESS": f"{address}:{port}",
        "JAX_NUM_PROCESSES": size,
        "JAX_PROCESS_ID": rank,
    }
    config = _tf_config(task, address, int(port)) if task.size > 1 else ""
    if config:
        found["TF_CONFIG"] = config
    return found


def _tf_config(task: Task, address: str, port: int) -> str:
    """Return TF_CONFIG: every task a worker, with a port of its own; empty: it cannot be known."""
    # The shortest worker, `"a:10000", `, has 11 characters.
    places = rank_places(task) if task.size * 11 < _TF_CONFIG_BYTES else []
    if not places:
        return ""
    hosts = (address,) if task.local_size == task.size else task.hosts
    workers = ", ".join(f'"{hosts[node]}:{port + 1 + local}"' for node, local in places)
    text = (
        f'{{"cluster": {{"worker": [{workers}]}}, '
        f'"task": {{"type": "worker", "index": {task.rank}}}}}'
    )
    return text if len(text) < _TF_CONFIG_BYTES else ""


def jax_devices(task: Task, count: int) -> str:
    """Return JAX_LOCAL_DEVICE_IDS: which of the GPUs that this task sees are its own.

    Without it, JAX takes the one with the number of the local rank, which a task that sees its
    own alone does not have, and which is one of many for the only task of its node.

    Args:
        task: this one.
        count: GPUs that it sees, at least one.
    """
    each = max(1, count // task.local_size)
    first = task.local_rank * each % count
    return ",".join(map(str, range(first, first + each)))


def torchrun_variables(
    task: Task, gpus: Gpus, address: str, port: str, environment: Mapping[str, str]
) -> dict[str, str]:
    """Return what torchrun takes for its own options (`PET_*`), one torchrun a node.

    They replace `--nnodes`, `--nproc-per-node` and the `--rdzv` options; one that is
    given on the command line counts for more.
    """
    found = {
        "PET_NNODES": str(task.size),
        "PET_NODE_RANK": str(task.rank),
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ENDPOINT": f"{address}:{port}",
        "PET_RDZV_ID": task.key or task.job or "teho",
    }
    if gpus.names and "PET_NPROC_PER_NODE" not in environment:
        found["PET_NPROC_PER_NODE"] = str(len(gpus.names))
    return found


def find_launcher(command: Sequence[str]) -> tuple[str, list[str]]:
    """Return `(the launcher that a command holds, its words)`, such as torchrun in a container.

    What stands behind the first script is that program's own; empty: there is no launcher.
    """
    words = [piece for word in command for piece in word.split()]
    for place, word in enumerate(words):
        name = word.rpartition("/")[2]
        if name in _PROCESSES:
            return name, words[place + 1 :]
        if name.endswith(".py"):
            break
    return "", []


def inner_processes(
    command: Sequence[str], gpus: Gpus, task: Task, environment: Mapping[str, str]
) -> int:
    """Return how many processes a task becomes: those that a launcher in its command starts."""
    launcher, words = find_launcher(command)
    if not launcher:
        return 1
    found = environment.get("PET_NPROC_PER_NODE", "") if _is_torchrun(launcher) else ""
    for place, word in enumerate(words):
        name, sign, value = word.replace("_", "-").partition("=")
        if name in _PROCESSES[launcher]:
            found = value if sign else "".join(words[place + 1 : place + 2])
            break
    count = int(found) if is_number(found) else len(gpus.names)
    # Accelerate is told of all nodes' processes together.
    nodes = task.size if is_number(found) and launcher.startswith("accelerate") else 1
    return max(1, count // nodes)


def starts_torchrun(command: Sequence[str]) -> bool:
    """Return whether a command is torchrun, or holds it."""
    return _is_torchrun(find_launcher(command)[0])


def _is_torchrun(launcher: str) -> bool:
    return launcher.startswith("torch")


def thread_variables(threads: int, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the number of threads as each library reads it; what is set already stays.

    `PJRT_NPROC` is what XLA's CPU client, and so JAX, takes for the number of cores. If the
    user has set OMP_NUM_THREADS, the others follow it; of a list for nested loops, its first.
    """
    outermost = environment.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    count = outermost if is_number(outermost) else str(threads)
    names = (
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "PJRT_NPROC",
        "TF_NUM_INTRAOP_THREADS",
        "TF_NUM_INTEROP_THREADS",
    )
    return {name: count for name in names if not environment.get(name)}
