"""Hugging Face Accelerate: once on each node, it starts a process per GPU."""

from __future__ import annotations

from collections.abc import Mapping

from teho.launchers.launcher import DEFAULTS, Launcher

__all__ = ["LAUNCHER"]

# It reads no variable for its own number, and its shell is what ignores the signal.
_ON_NODES = """{{ bare_step }}bash -c '
{% if signal_before_s %}
  trap "" USR1
{% endif %}
  exec accelerate launch{% include "accelerate.device.j2" %} \\
    --num_processes={{ nodes * processes }} --num_machines="$SLURM_NNODES" \\
    --machine_rank="$SLURM_NODEID" \\
    --main_process_ip="$MASTER_ADDR" --main_process_port="$MASTER_PORT" \\
    "$@"' accelerate {{ script }}"""


class Accelerate(Launcher):
    """It sets `RANK`, `WORLD_SIZE`, `MASTER_ADDR` and their kin itself."""

    help = "Hugging Face Accelerate, once on each node; it starts one process per GPU."
    on_one_node = "once on each node"
    on_nodes = "once on each node, with `--machine_rank` from the node's number"
    place = 50
    own_processes = True
    framework = "pytorch"
    other_program = "--no_python"
    templates: Mapping[str, str] = {
        "device": "{% if not gpus_per_node %} --cpu"
        "{% elif nodes * processes > 1 %} --multi_gpu{% endif %}",
        "node": 'accelerate launch{% include "accelerate.device.j2" %}'
        " --num_processes={{ processes }} --num_machines=1"
        '{% if meets %} --main_process_port="$MASTER_PORT"{% endif %} {{ script }}',
        "slurm": "{% if nodes > 1 %}\n"
        + _ON_NODES
        + "{% else %}"
        + DEFAULTS["slurm"]
        + "{% endif %}",
    }

    def meets(self, nodes: int, processes: int) -> bool:
        """Return whether there are several processes."""
        del nodes
        return processes > 1


LAUNCHER = Accelerate
