"""Hugging Face Accelerate: runs once on each node and starts a process per GPU."""

from __future__ import annotations

from collections.abc import Mapping

from teho.launchers.launcher import Launcher, on_several_nodes

__all__ = ["LAUNCHER"]

# It has no variable for the node's number. The shell in front of it ignores the signal.
_ON_NODES = """
{{ bare_step }}bash -c '
{% if signal_before_s %}
  trap "" USR1
{% endif %}
  exec accelerate launch{% include "accelerate.device.j2" %} \\
    --num_processes={{ nodes * processes }} --num_machines="$SLURM_NNODES" \\
    --machine_rank="$SLURM_NODEID" \\
    --main_process_ip="$MASTER_ADDR" --main_process_port="$MASTER_PORT" \\
    "$@"' accelerate {{ script }}"""


class Accelerate(Launcher):
    """It sets `RANK`, `WORLD_SIZE`, `MASTER_ADDR` and similar variables itself."""

    help = "Hugging Face Accelerate, once on each node; it starts one process per GPU."
    on_one_node = "starts Accelerate once"
    on_nodes = "starts Accelerate once on each node; `--machine_rank` is the number of the node"
    place = 50
    own_processes = True
    framework = "pytorch"
    other_program = "--no_python"
    address_for = "processes"
    programs = ("accelerate", "accelerate.commands.launch")
    processes_option = "--num-processes"
    counts_all_nodes = True
    templates: Mapping[str, str] = {
        "device": "{% if not gpus_per_node %} --cpu"
        "{% elif nodes * processes > 1 %} --multi_gpu{% endif %}",
        "node": 'accelerate launch{% include "accelerate.device.j2" %}'
        " --num_processes={{ processes }} --num_machines=1"
        '{% if meets %} --main_process_port="$MASTER_PORT"{% endif %} {{ script }}',
        "slurm": on_several_nodes(_ON_NODES),
    }


LAUNCHER = Accelerate
