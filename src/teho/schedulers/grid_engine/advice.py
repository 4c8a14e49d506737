"""Advice in Grid Engine's options and commands."""

from __future__ import annotations

import math

from teho.schedulers.advice import Advice

__all__ = ["GridEngineAdvice"]


class GridEngineAdvice(Advice):
    """Advice for Grid Engine."""

    time = "`-l h_rt=HH:MM:SS`"
    later_job = "submit the remaining work as a job without a GPU: `qsub -hold_jid $JOB_ID rest.sh`"
    many_in_one_job = "use a loop in one script instead of one `qsub` for each run"
    more_address_space = (
        "Do not request `-l h_vmem` together with GPUs: it limits the address space, not the "
        "memory."
    )

    def use_gpus(self, per_node: int, nodes: int | None) -> str:
        """Return examples of the GPU resources that sites define."""
        return (
            f"lower the number in the script's GPU request to {per_node}, as in "
            f"`-l gpu={per_node}` or `-l coproc_v100={per_node}`"
        )

    def cores(self, per_node: int, tasks: int | None) -> str:
        """Return the option with the usual name of the parallel environment."""
        return (
            f"`-pe smp {per_node}` (or the name of the cluster's parallel environment for shared "
            "memory)"
        )

    def memory(self, needed_gib: float, cores: int) -> str:
        """Return the limit for each slot."""
        each = math.ceil(needed_gib / max(cores, 1) * 10) / 10
        return (
            f"`-l h_vmem={each:g}G` (for each of {cores} slots; if `h_vmem` limits virtual memory, "
            "increase this value in steps)"
        )

    def account_command(self, job_id: str) -> str:
        """Return a qacct command."""
        return f"`qacct -j {job_id}`"

    def running_command(self, job_id: str) -> str:
        """Return a qstat command."""
        return f"`qstat -j {job_id}`"

    def log(self, job_id: str, job_name: str) -> str:
        """Return the default file for errors."""
        return f"`{job_name or 'NAME'}.e{job_id}`"
