"""The environment of one task: what each framework reads, and what the site needs.

RANK and its kin tell the truth of this launch and replace what is there. Everything else is a
default: what the user has set stays.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from teho.launch.gpus import Gpus
    from teho.schedulers.task import Task

__all__ = [
    "meeting_place",
    "rank_variables",
    "thread_variables",
    "torchrun_processes",
    "torchrun_variables",
]

_TF_CONFIG_BYTES = 100_000
"""Linux takes no longer variable than 128 KiB (MAX_ARG_STRLEN of execve(2))."""


def meeting_place(task: Task, environment: Mapping[str, str]) -> tuple[str, str]:
    """Return `(MASTER_ADDR, MASTER_PORT)`: what the user has set, else of the step's first node.

    The address is empty where there are several nodes and nobody tells their names.
    """
    local = task.local_size == task.size
    address = "127.0.0.1" if local else (task.hosts[0] if task.hosts else "")
    return (
        environment.get("MASTER_ADDR") or address,
        environment.get("MASTER_PORT") or str(task.port),
    )


def rank_variables(task: Task, address: str, port: str) -> dict[str, str]:
    """Return the numbers of this task as PyTorch, DeepSpeed, JAX, TensorFlow and Horovod read them.

    `LOCAL_SIZE`, `CROSS_RANK` and `CROSS_SIZE` are what DeepSpeed's own launcher sets; the
    `HOROVOD_` names are those of its Gloo and elastic code; JAX reads the `JAX_` names in
    `jax.distributed.initialize()`, and TensorFlow `TF_CONFIG`.
    """
    rank, size = str(task.rank), str(task.size)
    local_rank, local_size = str(task.local_rank), str(task.local_size)
    nodes = task.node_count or -(-task.size // task.local_size)
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
        "HOROVOD_CROSS_RANK": str(task.node_rank),
        "HOROVOD_CROSS_SIZE": str(nodes),
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
    hosts = (address,) if task.local_size == task.size else task.hosts
    counts = task.tasks_per_node or (task.size,)
    if len(hosts) != len(counts):
        return ""
    workers = [
        f'"{host}:{port + 1 + local}"'
        for host, count in zip(hosts, counts, strict=True)
        for local in range(count)
    ]
    text = (
        f'{{"cluster": {{"worker": [{", ".join(workers)}]}}, '
        f'"task": {{"type": "worker", "index": {task.rank}}}}}'
    )
    return text if len(text) < _TF_CONFIG_BYTES else ""


def torchrun_variables(task: Task, gpus: Gpus, address: str, port: str) -> dict[str, str]:
    """Return what torchrun takes for its own options (`PET_*`), one torchrun a node.

    They stand in for `--nnodes`, `--nproc-per-node` and the `--rdzv` options; one that is
    given on the command line counts for more.
    """
    found = {
        "PET_NNODES": str(task.size),
        "PET_NODE_RANK": str(task.rank),
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ENDPOINT": f"{address}:{port}",
        "PET_RDZV_ID": task.key or task.job or "teho",
    }
    if gpus.names:
        found["PET_NPROC_PER_NODE"] = str(len(gpus.names))
    return found


def torchrun_processes(command: Sequence[str], gpus: Gpus) -> int:
    """Return how many processes a torchrun in this command starts; 0: it holds no torchrun."""
    words = [os.path.basename(word) for word in command]  # noqa: PTH119 - pathlib loads late
    if "torchrun" not in words and "torch.distributed.run" not in words:
        return 0
    for place, word in enumerate(command):
        name, sign, value = word.partition("=")
        if name in {"--nproc_per_node", "--nproc-per-node"}:
            value = value if sign else "".join(command[place + 1 : place + 2])
            if value.isdigit():
                return max(1, int(value))
    return max(1, len(gpus.names))


def thread_variables(threads: int, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the number of threads as each library reads it; what is set already stays.

    `PJRT_NPROC` is what XLA's CPU client, and so JAX, takes for the number of cores. Where the
    user has set OMP_NUM_THREADS, the others follow it.
    """
    count = environment.get("OMP_NUM_THREADS") or str(threads)
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
