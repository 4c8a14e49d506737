"""DeepSpeed's own launcher, once on each node; on several nodes it is torchrun."""

from __future__ import annotations

from collections.abc import Mapping

from teho.launchers.launcher import DEFAULTS, Launcher

__all__ = ["LAUNCHER"]


class DeepSpeed(Launcher):
    """On several nodes its own launcher would go by ssh, which clusters do not allow."""

    help = "DeepSpeed's launcher; on several nodes torchrun, once on each node."
    on_one_node = "DeepSpeed's own launcher"
    on_nodes = "torchrun, because DeepSpeed's own launcher would need ssh"
    place = 60
    own_processes = True
    framework = "pytorch"
    other_program = "--no_python"
    templates: Mapping[str, str] = {
        "node": "deepspeed{% if gpus_per_node %} --num_gpus={{ processes }}{% endif %}"
        '{% if meets %} --master_port="$MASTER_PORT"{% endif %} {{ script }}',
        "slurm": '{% if nodes > 1 %}{% include "torchrun.slurm.j2" %}{% else %}'
        + DEFAULTS["slurm"]
        + "{% endif %}",
        "slurm_comment": "{% if nodes > 1 %}"
        "# torchrun, once on each node: DeepSpeed's own launcher would go by ssh."
        "{% else %}" + DEFAULTS["slurm_comment"] + "{% endif %}",
    }

    def meets(self, nodes: int, processes: int) -> bool:
        """Return whether there are several processes."""
        del nodes
        return processes > 1


LAUNCHER = DeepSpeed
