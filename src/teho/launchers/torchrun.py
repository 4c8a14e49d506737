"""PyTorch's torchrun: once on each node, it starts a process per GPU."""

from __future__ import annotations

from collections.abc import Mapping

from teho.launchers.launcher import DEFAULTS, Launcher

__all__ = ["LAUNCHER"]

_ON_NODES = """{{ step }}torchrun --nnodes="$SLURM_NNODES" --nproc_per_node={{ processes }} \\
  --rdzv_id="$SLURM_JOB_ID" --rdzv_backend=c10d --rdzv_endpoint="$MASTER_ADDR:$MASTER_PORT" \\
  {{ script }}"""


class Torchrun(Launcher):
    """It sets `RANK`, `WORLD_SIZE`, `MASTER_ADDR` and their kin itself."""

    help = "PyTorch's torchrun, once on each node; it starts one process per GPU."
    on_one_node = "once on each node, `--standalone`"
    on_nodes = "once on each node; they meet at the first node's `MASTER_ADDR`"
    place = 30
    own_processes = True
    framework = "pytorch"
    other_program = "--no-python"
    templates: Mapping[str, str] = {
        "node": "torchrun --standalone --nnodes=1 --nproc_per_node={{ processes }} {{ script }}",
        "slurm": "{% if nodes > 1 %}"
        + _ON_NODES
        + "{% else %}"
        + DEFAULTS["slurm"]
        + "{% endif %}",
    }

    def meets(self, nodes: int, processes: int) -> bool:
        """Return whether there are several nodes: on one, it finds a free port itself."""
        del processes
        return nodes > 1


LAUNCHER = Torchrun
