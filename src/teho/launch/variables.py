"""Compute the environment of one task: the variables of each framework and of the site.

RANK and similar variables replace existing values. All other variables are defaults: the user's
values stay.
"""

from __future__ import annotations

from teho.schedulers.hostlist import is_number
from teho.schedulers.sites import NODE_LAUNCHERS
from teho.schedulers.task import rank_places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from teho.launch.gpus import Gpus
    from teho.schedulers.site_types import NodeLauncher
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
"""The limit of Linux is 128 KiB per variable (MAX_ARG_STRLEN of execve(2))."""
_THREADS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "PJRT_NPROC",
    "TF_NUM_INTRAOP_THREADS",
    "TF_NUM_INTEROP_THREADS",
)


def meeting_place(task: Task, environment: Mapping[str, str]) -> tuple[str, str]:
    """Return `(MASTER_ADDR, MASTER_PORT)`: the user's values, or else the values of the first node.

    The address is empty if there are several nodes and their names are unknown.
    """
    local = task.local_size == task.size
    address = "127.0.0.1" if local else task.first_host
    return (
        environment.get("MASTER_ADDR") or address,
        environment.get("MASTER_PORT") or str(task.port),
    )


def rank_variables(task: Task, address: str, port: str) -> dict[str, str]:
    """Return the rank variables of PyTorch, DeepSpeed, JAX, TensorFlow and Horovod.

    DeepSpeed's launcher sets `LOCAL_SIZE`, `CROSS_RANK` and `CROSS_SIZE`. Horovod's launcher sets
    the `HOROVOD_` names: its "cross" size is the number of nodes that also have this local rank.
    `jax.distributed.initialize()` reads the address. It takes the number and the rank from Slurm,
    Open MPI or the program. TensorFlow reads `TF_CONFIG`.
    """
    nodes = task.node_count or -(-task.size // task.local_size)
    counts = task.tasks_per_node or (task.local_size,) * nodes
    across = [count > task.local_rank for count in counts]
    numbers = {
        "RANK": task.rank,
        "WORLD_SIZE": task.size,
        "LOCAL_RANK": task.local_rank,
        "LOCAL_WORLD_SIZE": task.local_size,
        "NODE_RANK": task.node_rank,
        "GROUP_RANK": task.node_rank,
        "LOCAL_SIZE": task.local_size,
        "CROSS_RANK": task.node_rank,
        "CROSS_SIZE": nodes,
        "HOROVOD_RANK": task.rank,
        "HOROVOD_SIZE": task.size,
        "HOROVOD_LOCAL_RANK": task.local_rank,
        "HOROVOD_LOCAL_SIZE": task.local_size,
        "HOROVOD_CROSS_RANK": sum(across[: task.node_rank]),
        "HOROVOD_CROSS_SIZE": sum(across),
        "JAX_NUM_PROCESSES": task.size,
        "JAX_PROCESS_ID": task.rank,
    }
    found = {name: str(number) for name, number in numbers.items()}
    found |= {"MASTER_ADDR": address, "MASTER_PORT": port}
    found["JAX_COORDINATOR_ADDRESS"] = f"{address}:{port}"
    config = _tf_config(task, address, int(port)) if task.size > 1 else ""
    if config:
        found["TF_CONFIG"] = config
    return found


def _tf_config(task: Task, address: str, port: int) -> str:
    """Return TF_CONFIG: every task is a worker with its own port. Empty: it is unknown."""
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
    """Return JAX_LOCAL_DEVICE_IDS: the GPUs of this task, among the GPUs that it sees.

    Without it, JAX uses the GPU with the number of the local rank. A task that sees only its own
    GPU does not have this number. The only task of a node would use one of many GPUs.

    Args:
        task: this one.
        count: number of GPUs that it sees, at least one.
    """
    each = max(1, count // task.local_size)
    first = task.local_rank * each % count
    return ",".join(map(str, range(first, first + each)))


def torchrun_variables(
    task: Task, gpus: Gpus, address: str, port: str, environment: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables of torchrun's options (`PET_*`), for one torchrun per node.

    They replace `--nnodes`, `--nproc-per-node` and the `--rdzv` options. An option on the command
    line has priority.
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


def find_launcher(command: Sequence[str]) -> tuple[NodeLauncher | None, list[str]]:
    """Return `(launcher in a command, words after it)`, also for torchrun in a container.

    Words after the first script belong to the script. None: the command has no launcher.
    """
    words = [piece for word in command for piece in word.split()]
    for place, word in enumerate(words):
        program = word.rpartition("/")[2]
        for launcher in NODE_LAUNCHERS:
            if program in launcher["programs"]:
                return launcher, words[place + 1 :]
        if program.endswith(".py"):
            break
    return None, []


def inner_processes(
    command: Sequence[str], gpus: Gpus, task: Task, environment: Mapping[str, str]
) -> int:
    """Return the number of processes that a launcher in the command starts in this task."""
    launcher, words = find_launcher(command)
    if launcher is None:
        return 1
    found = environment.get(launcher["processes_variable"], "")
    for place, word in enumerate(words):
        name, sign, value = word.replace("_", "-").partition("=")
        if name == launcher["processes_option"]:
            found = value if sign else "".join(words[place + 1 : place + 2])
            break
    count = int(found) if is_number(found) else len(gpus.names)
    nodes = task.size if is_number(found) and launcher["counts_all_nodes"] else 1
    return max(1, count // nodes)


def starts_torchrun(command: Sequence[str]) -> bool:
    """Return whether a command starts torchrun."""
    launcher, _ = find_launcher(command)
    return launcher is not None and launcher["name"] == "torchrun"


def thread_variables(threads: int, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the number of threads in the variable of each library; existing values stay.

    XLA's CPU client, and so JAX, uses `PJRT_NPROC` as the number of cores. If the user has set
    OMP_NUM_THREADS, the other variables get this value. Of a list for nested loops, they get the
    first entry.
    """
    outermost = environment.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    count = outermost if is_number(outermost) else str(threads)
    return {name: count for name in _THREADS if not environment.get(name)}
