"""Horovod: with Slurm, the tasks connect by MPI; without Slurm, horovodrun starts them."""

from __future__ import annotations

from collections.abc import Mapping

from teho.launchers.launcher import FOR_EACH_TASK, Launcher

__all__ = ["LAUNCHER"]


class Horovod(Launcher):
    """It gets the ranks from MPI, so the script sets no variable."""

    help = "Horovod: one task per GPU; without Slurm, horovodrun starts the tasks."
    on_one_node = "starts one task for each GPU; with Grid Engine, `horovodrun` starts the tasks"
    on_nodes = "starts one task for each GPU"
    place = 70
    task_per_gpu = True
    needs_horovod = True
    templates: Mapping[str, str] = {
        "node": "horovodrun -np {{ tasks_per_node }} {{ program }}",
        "slurm": "{{ step }}{{ program }}",
        "slurm_comment": FOR_EACH_TASK + ".",
    }


LAUNCHER = Horovod
