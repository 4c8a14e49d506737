"""DeepSpeed's launcher on one node; on several nodes, torchrun once on each node."""

from __future__ import annotations

from collections.abc import Mapping

from teho.launchers.launcher import Launcher, on_several_nodes

__all__ = ["LAUNCHER"]


class DeepSpeed(Launcher):
    """On several nodes, DeepSpeed's launcher would use ssh, which clusters do not allow."""

    help = "DeepSpeed's launcher; on several nodes, torchrun starts once on each node instead."
    on_one_node = "starts DeepSpeed's own launcher once"
    on_nodes = "starts torchrun once on each node, because DeepSpeed's own launcher would need ssh"
    place = 60
    own_processes = True
    framework = "pytorch"
    other_program = "--no_python"
    address_for = "processes"
    programs = ("deepspeed",)
    processes_option = "--num-gpus"
    templates: Mapping[str, str] = {
        "node": "deepspeed{% if gpus_per_node %} --num_gpus={{ processes }}{% endif %}"
        '{% if meets %} --master_port="$MASTER_PORT"{% endif %} {{ script }}',
        "slurm": on_several_nodes('{% include "torchrun.slurm.j2" %}'),
        "slurm_comment": on_several_nodes(
            "# torchrun runs once on each node, because DeepSpeed's own launcher would use ssh.",
            "slurm_comment",
        ),
    }


LAUNCHER = DeepSpeed
