"""`teho launch`: the scheduler starts the tasks, and Teho sets up each one."""

from __future__ import annotations

from collections.abc import Mapping

from teho.launchers.launcher import FOR_EACH_TASK, Launcher

__all__ = ["LAUNCHER"]


class Launch(Launcher):
    """`teho launch`, which sets the variables that the frameworks read (docs/launch.md)."""

    help = "The scheduler starts one task per GPU; `teho launch` sets ranks, cores and threads."
    on_one_node = (
        "starts one task for each GPU, and each task is `teho launch` with the command; with Grid "
        "Engine, or on this machine, starts only one task"
    )
    on_nodes = (
        "starts one task for each GPU; with Grid Engine, `mpirun` starts one task on each node"
    )
    place = 20
    task_per_gpu = True
    through_teho = True
    # The script has no --cpu-bind. If `teho launch` knows the cores near each GPU, it binds the
    # tasks again, within the cores of the step. Otherwise each task keeps the cores from srun.
    templates: Mapping[str, str] = {
        "slurm_comment": FOR_EACH_TASK + "."
        " `teho launch` gives each task its rank, cores, threads and caches.",
        # Open MPI sends only these variables to the other nodes, if Grid Engine does not.
        "mpirun": "mpirun --map-by ppr:1:node --bind-to none \\\n"
        "  -x OMP_NUM_THREADS{% if site %} -x {{ site.split('=')[0] }}{% endif %} \\\n"
        "  {{ teho }}{{ container }}{{ program }}",
        "mpirun_comment": "# The mpirun of Open MPI starts the program once on each node.",
    }

    def tasks_per_node(self, gpus_per_node: int, *, starts_tasks: bool) -> int:
        """Return one task if the scheduler only starts the script, as Grid Engine does."""
        return max(1, gpus_per_node) if starts_tasks else 1

    def starts_one(self, *, starts_tasks: bool, nodes: int) -> bool:
        """Return whether the scheduler only starts the script, on one node."""
        return not starts_tasks and nodes == 1


LAUNCHER = Launch
