"""What to do, in Grid Engine's options and commands."""

from __future__ import annotations

import math

from teho.schedulers.advice import Advice

__all__ = ["GridEngineAdvice"]


class GridEngineAdvice(Advice):
    """Grid Engine's."""

    def use_gpus(self, per_node: int, nodes: int | None) -> str:
        """Show the resources that sites call so."""
        del nodes
        return (
            f"lower the number in the script's GPU request to {per_node}, as in "
            f"`-l gpu={per_node}` or `-l coproc_v100={per_node}`"
        )

    def cores(self, per_node: int, tasks: int | None) -> str:
        """Name the usual parallel environment."""
        del tasks
        return f"`-pe smp {per_node}` (or as the site calls its shared-memory environment)"

    def memory(self, needed_gib: float, cores: int) -> str:
        """Name the limit, which counts for each slot."""
        each = math.ceil(needed_gib / max(cores, 1) * 10) / 10
        return (
            f"`-l h_vmem={each:g}G` (for each of {cores} slots; if it limits virtual memory, "
            "go there in steps)"
        )

    def time(self) -> str:
        """Name the resource for the time limit."""
        return "`-l h_rt=HH:MM:SS`"

    def later_job(self) -> str:
        """Name the job that waits for this one."""
        return "submit the rest as a job without a GPU, `qsub -hold_jid $JOB_ID rest.sh`"

    def many_in_one_job(self) -> str:
        """Say what replaces many qsub commands."""
        return "a loop in one script instead of a `qsub` for each"

    def account_command(self, job_id: str) -> str:
        """Name qacct."""
        return f"`qacct -j {job_id}`"

    def log(self, job_id: str, job_name: str) -> str:
        """Name the default file for errors."""
        return f"`{job_name or 'NAME'}.e{job_id}`"

    def more_address_space(self) -> str:
        """Name the option that limits it."""
        return "Ask for no `-l h_vmem` beside GPUs: it limits the address space, not the memory."
