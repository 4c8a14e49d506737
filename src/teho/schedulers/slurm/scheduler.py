"""The description of Slurm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from teho.schedulers.advice import Advice
from teho.schedulers.scheduler import Scheduler, part_of
from teho.schedulers.slurm.advice import SlurmAdvice
from teho.schedulers.slurm.allocation import read_job

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date
    from pathlib import Path

    from teho.model.always import Hook
    from teho.model.cluster import Cluster
    from teho.model.job import RunningJob
    from teho.model.member import GpuNodes, Live
    from teho.model.plan import Option, PastJob
    from teho.schedulers.inventory import Ask
    from teho.schedulers.script.options import ScriptOptions
    from teho.schedulers.slurm.backend import Slurm
    from teho.schedulers.variables import Variables

__all__ = ["SlurmScheduler"]


class SlurmScheduler(Scheduler):
    """Slurm."""

    title = "Slurm"
    precedence = 10
    advice: Advice = SlurmAdvice()

    starts_tasks = True
    has_associations = True
    request_options = frozenset({"qos", "reservation", "licenses", "exclusive"})
    reports_cores = True
    shows_comments = True
    reports_gpus = True

    job_variables = "SLURM_"
    account_variable = "SBATCH_ACCOUNT"

    estimate_source = "`sbatch --test-only`, read just now"
    inventory_command = "scontrol"
    accounting_command = "sacct"
    ping_command = ("scontrol", "ping")

    def backend(self, home: Path) -> Slurm:
        """Return the builder of Slurm's commands."""
        from teho.schedulers.slurm.backend import Slurm

        return Slurm()

    def directives(
        self, option: Option, cluster: Cluster, options: ScriptOptions
    ) -> tuple[str, ...]:
        """Return the options of the `#SBATCH` lines."""
        from teho.schedulers.slurm.directives import slurm_directives

        return tuple(slurm_directives(option, cluster, options))

    def job_name(self, name: str) -> str:
        """Return a name of at most 200 printable characters."""
        from teho.schedulers.slurm.quoting import slurm_name

        return slurm_name(name)

    def threads(self, option: Option, processes: int) -> str:
        """Return each process's part of a task's cores, or of the node's if none are requested."""
        if "cores" not in option.automatic:
            shares = processes * option.cpus_per_core
            if shares == 1:
                return "$SLURM_CPUS_PER_TASK"
            fits = option.cpus_per_task >= processes
            return f"$((SLURM_CPUS_PER_TASK / {shares}))" if fits else "1"
        return part_of("SLURM_CPUS_ON_NODE", option.tasks_per_node * processes)

    def allocation(self, variables: Variables) -> tuple[dict[str, Any], int | None] | None:
        """Read Slurm's own variables."""
        return read_job(variables)

    def job_here(self, environment: Mapping[str, str], machine: str) -> RunningJob | None:
        """Return the job of this script."""
        from teho.schedulers.slurm.overlap import job_of_script

        return job_of_script(environment, machine)

    def hooks(
        self, start: str, home: Path, environment: Mapping[str, str], ask: Ask
    ) -> tuple[Hook, ...]:
        """Return the lines that set `BASH_ENV`."""
        from teho.schedulers.slurm.hook import slurm_hook

        return (slurm_hook(start, home, environment),)

    def unused_variables(self, environment: Mapping[str, str]) -> str:
        """Name the variables that sbatch would use as options."""
        names = sorted(
            name
            for name in environment
            if name.startswith("SBATCH_") and name != self.account_variable
        )
        if not names:
            return ""
        verb = "is" if len(names) == 1 else "are"
        return (
            f"{', '.join(names)} {verb} set but not used, because the job would then differ "
            "from the plan: use the options of `teho submit` instead"
        )

    def past_jobs(self, ask: Ask, user: str, back_s: float) -> tuple[PastJob, ...]:
        """Ask sacct."""
        from teho.schedulers.slurm.history import slurm_past_jobs

        return slurm_past_jobs(ask, user=user, back_s=back_s)

    def live(self, ask: Ask, user: str, groups: Sequence[str]) -> Live:
        """Ask for the partitions' states and the user's associations."""
        from teho.schedulers.slurm.live import slurm_live

        return slurm_live(ask, user=user, groups=groups)

    def gpu_nodes(self, ask: Ask) -> GpuNodes:
        """Ask sinfo."""
        from teho.schedulers.slurm.gpu_nodes import slurm_gpu_nodes

        return slurm_gpu_nodes(ask)

    def discover(
        self, ask: Ask, environment: Mapping[str, str], host: str, today: date, name: str
    ) -> Cluster:
        """Ask scontrol, and sacctmgr about this user."""
        import getpass

        from teho.schedulers.slurm.inventory import slurm_cluster

        return slurm_cluster(ask, user=getpass.getuser(), host=host, today=today, name=name)
