"""Slurm's srun: one task per GPU, with the variables that PyTorch reads."""

from __future__ import annotations

from collections.abc import Mapping

from teho.launchers.launcher import FOR_EACH_TASK, Launcher

__all__ = ["LAUNCHER"]


class Srun(Launcher):
    """A rank is known only inside the step, so a shell in the step sets the variables."""

    help = "Slurm starts one task per GPU, with RANK, LOCAL_RANK and WORLD_SIZE."
    on_one_node = "starts one task for each GPU, with `RANK`, `LOCAL_RANK`, `WORLD_SIZE`"
    on_nodes = "starts one task for each GPU, with the same variables as on one node"
    place = 40
    schedulers = frozenset({"slurm"})
    task_per_gpu = True
    address_for = "processes"
    variables: Mapping[str, str] = {
        "RANK": "$SLURM_PROCID",
        "LOCAL_RANK": "$SLURM_LOCALID",
        "WORLD_SIZE": "$SLURM_NTASKS",
    }
    templates: Mapping[str, str] = {
        "slurm": "{{ step }}bash -c '\n"
        f"  export {' '.join(f'{name}={value}' for name, value in variables.items())}\n"
        """  exec "$@"' rank {{ program }}""",
        "slurm_comment": FOR_EACH_TASK + ". The rank is known only inside the job step.",
    }


LAUNCHER = Srun
