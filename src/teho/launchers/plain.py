"""The plain command, started once."""

from __future__ import annotations

from collections.abc import Mapping

from teho.launchers.launcher import Launcher

__all__ = ["LAUNCHER"]


class Plain(Launcher):
    """It starts one process, which may start others."""

    help = "Starts the command once."
    on_one_node = "starts the command once"
    on_nodes = (
        "starts the command once, on the first node; the command starts the tasks on other nodes"
    )
    place = 10
    one_process = True
    templates: Mapping[str, str] = {
        "slurm": "{% if nodes > 1 %}{{ teho }}{{ container }}{% else %}{{ step }}{% endif %}"
        "{{ program }}",
        "slurm_comment": "{% if nodes > 1 %}"
        "# The program runs once, on the first node. The program itself starts the other tasks."
        "{% else %}"
        "# srun starts the program as a job step, so Slurm measures what the program uses."
        "{% endif %}",
        "mpirun": "{{ teho }}{{ container }}{{ program }}",
        "mpirun_comment": "# The program runs once, on the first node. The program itself starts "
        "the other tasks, as mpirun does.",
    }


LAUNCHER = Plain
