"""Advice in Slurm's options and commands."""

from __future__ import annotations

import math

from teho.schedulers.advice import Advice

__all__ = ["SlurmAdvice"]


class SlurmAdvice(Advice):
    """Advice for Slurm."""

    time = "`--time=HH:MM:SS`"
    later_job = (
        "submit the remaining work as a job without a GPU: "
        "`sbatch --dependency=afterok:$SLURM_JOB_ID rest.sh`"
    )
    many_in_one_job = "use a loop in one script instead of one `sbatch` for each run"
    whole_node = "`--exclusive`"
    log_of_each_task = "`srun --output=job-%j-%t.log` writes a separate log for each task."
    show_gpus = "Give the step all of the job's GPUs: `srun --gpu-bind=none`"
    more_cores_of_job = (
        "Since Slurm 22.05, `srun` does not use the `--cpus-per-task` of `sbatch`: "
        "`export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK`, or `srun --cpus-per-task`."
    )

    def use_gpus(self, per_node: int, nodes: int | None) -> str:
        """Return the options for GPUs, and for nodes if the job needs fewer of them."""
        fewer = "" if nodes is None else f" with `--nodes={nodes}`"
        return (
            f"request `--gpus-per-node={per_node}` (or, if the script names a GPU type, "
            f"`--gres=gpu:TYPE:{per_node}`){fewer}"
        )

    def start_tasks(self, gpus: int) -> str:
        """Return an srun command with a task for each GPU."""
        return f"`srun --ntasks-per-node={gpus} teho launch -- CMD`"

    def cores(self, per_node: int, tasks: int | None) -> str:
        """Return the option for the cores of a task, or for fewer tasks than now."""
        if tasks and tasks > per_node:
            return f"`--ntasks-per-node={per_node}`"
        each = math.ceil(per_node / (tasks or 1))
        # If the number of tasks is not known, the option is right for one task.
        return f"`--cpus-per-task={each}`" + ("" if tasks else " (if each node has one task)")

    def memory(self, needed_gib: float, cores: int) -> str:
        """Return the option for the memory of each node."""
        return f"`--mem={math.ceil(needed_gib)}G`"

    def leave_out(self, nodes: str) -> str:
        """Return the option that excludes nodes."""
        return f"`--exclude={nodes}`"

    def account_command(self, job_id: str) -> str:
        """Return an sacct command."""
        return f"`sacct -j {job_id} -o JobID,State,ExitCode,MaxRSS`"

    def log(self, job_id: str, job_name: str) -> str:
        """Return the default of `--output`."""
        return f"`slurm-{job_id}.out`"
