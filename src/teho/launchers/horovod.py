"""Horovod: Slurm's tasks find each other by MPI; elsewhere horovodrun starts them."""

from __future__ import annotations

from collections.abc import Mapping

from teho.launchers.launcher import FOR_EACH_TASK, Launcher

__all__ = ["LAUNCHER"]


class Horovod(Launcher):
    """It asks MPI for ranks, so the script sets no variable."""

    help = "Horovod: one task per GPU; without Slurm, horovodrun."
    on_one_node = "one task for each GPU; with Grid Engine, `horovodrun`"
    on_nodes = "one task for each GPU"
    place = 70
    task_per_gpu = True
    templates: Mapping[str, str] = {
        "node": "horovodrun -np {{ tasks_per_node }} {{ program }}",
        "slurm": "{{ step }}{{ program }}",
        "slurm_comment": FOR_EACH_TASK + ".",
    }


LAUNCHER = Horovod
