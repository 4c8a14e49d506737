"""PyTorch's torchrun: runs once on each node and starts a process per GPU."""

from __future__ import annotations

from collections.abc import Mapping

from teho.launchers.launcher import Launcher, on_several_nodes

__all__ = ["LAUNCHER"]

_ON_NODES = """{{ step }}torchrun --nnodes="$SLURM_NNODES" --nproc_per_node={{ processes }} \\
  --rdzv_id="$SLURM_JOB_ID" --rdzv_backend=c10d --rdzv_endpoint="$MASTER_ADDR:$MASTER_PORT" \\
  {{ script }}"""


class Torchrun(Launcher):
    """It sets `RANK`, `WORLD_SIZE`, `MASTER_ADDR` and similar variables itself."""

    help = "PyTorch's torchrun, once on each node; it starts one process per GPU."
    on_one_node = "starts torchrun once, with `--standalone`"
    on_nodes = (
        "starts torchrun once on each node; all processes connect to the first node (`MASTER_ADDR`)"
    )
    place = 30
    own_processes = True
    framework = "pytorch"
    other_program = "--no-python"
    address_for = "nodes"  # on one node, it finds a free port itself
    programs = ("torchrun", "torch.distributed.run", "torch.distributed.launch")
    processes_option = "--nproc-per-node"
    processes_variable = "PET_NPROC_PER_NODE"
    templates: Mapping[str, str] = {
        "node": "torchrun --standalone --nnodes=1 --nproc_per_node={{ processes }} {{ script }}",
        "slurm": on_several_nodes(_ON_NODES),
    }


LAUNCHER = Torchrun
