"""What to do, in Slurm's options and commands."""

from __future__ import annotations

import math

from teho.schedulers.advice import Advice

__all__ = ["SlurmAdvice"]


class SlurmAdvice(Advice):
    """Slurm's."""

    def use_gpus(self, per_node: int, nodes: int | None) -> str:
        """Name the options for GPUs, and for nodes if there are to be fewer."""
        fewer = "" if nodes is None else f" with `--nodes={nodes}`"
        return (
            f"ask for `--gpus-per-node={per_node}`, or `--gres=gpu:TYPE:{per_node}` with the "
            f"type that the script names now{fewer}"
        )

    def start_tasks(self, gpus: int) -> str:
        """Name srun with a task for each GPU."""
        return f"`srun --ntasks-per-node={gpus} teho launch -- CMD`"

    def cores(self, per_node: int, tasks: int | None) -> str:
        """Name the option for cores of a task, or for tasks if there are more than cores."""
        if tasks and tasks > per_node:
            return f"`--ntasks-per-node={per_node}`"
        each = math.ceil(per_node / (tasks or 1))
        # Without the number of tasks the option is only right for the usual one.
        return f"`--cpus-per-task={each}`" + ("" if tasks else " (with one task a node)")

    def memory(self, needed_gib: float, cores: int) -> str:
        """Name the option for memory of each node."""
        del cores
        return f"`--mem={math.ceil(needed_gib)}G`"

    def time(self) -> str:
        """Name the option for the time limit."""
        return "`--time=HH:MM:SS`"

    def later_job(self) -> str:
        """Name the job that follows this one."""
        return (
            "submit the rest as a job without a GPU, "
            "`sbatch --dependency=afterok:$SLURM_JOB_ID rest.sh`"
        )

    def many_in_one_job(self) -> str:
        """Say what replaces many sbatch commands."""
        return "a loop in one script instead of an `sbatch` for each"

    def leave_out(self, nodes: str) -> str:
        """Name the option that keeps a job off nodes."""
        return f"`--exclude={nodes}`"

    def whole_node(self) -> str:
        """Name the option for whole nodes."""
        return "`--exclusive`"

    def account_command(self, job_id: str) -> str:
        """Name sacct."""
        return f"`sacct -j {job_id} -o JobID,State,ExitCode,MaxRSS`"

    def log(self, job_id: str, job_name: str) -> str:
        """Name the default of `--output`."""
        del job_name
        return f"`slurm-{job_id}.out`"

    def log_of_each_task(self) -> str:
        """Name the pattern with the task's number."""
        return "`srun --output=job-%j-%t.log` gives each task a log of its own."

    def show_gpus(self) -> str:
        """Name srun's option."""
        return "Give the step all of the job's GPUs: `srun --gpu-bind=none`"

    def more_cores_of_job(self) -> str:
        """Name the variable that Slurm 22.05 needs."""
        return (
            "Since Slurm 22.05 `srun` does not take the cores of `sbatch`: "
            "`export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK`, or `srun --cpus-per-task`."
        )
