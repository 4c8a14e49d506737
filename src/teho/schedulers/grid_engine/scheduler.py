"""The description of Grid Engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from teho.launchers.registry import launcher_of
from teho.schedulers.advice import Advice
from teho.schedulers.grid_engine.advice import GridEngineAdvice
from teho.schedulers.grid_engine.allocation import read_job
from teho.schedulers.scheduler import Scheduler, part_of
from teho.schedulers.task import job_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import date
    from pathlib import Path

    from teho.model.always import Hook
    from teho.model.cluster import Cluster
    from teho.model.job import RunningJob
    from teho.model.member import Live
    from teho.model.plan import Option, PastJob
    from teho.schedulers.grid_engine.backend import GridEngine
    from teho.schedulers.inventory import Ask
    from teho.schedulers.script.options import ScriptOptions
    from teho.schedulers.variables import Variables

__all__ = ["GridEngineScheduler"]


class GridEngineScheduler(Scheduler):
    """Grid Engine."""

    title = "Grid Engine"
    precedence = 20
    advice: Advice = GridEngineAdvice()

    has_slots = True
    partition_word = "queue"
    reports_cores = True

    job_variables = "SGE_"

    estimate_source = "`qsub -w v`, read just now"
    inventory_command = "qconf"
    accounting_command = "qacct"

    def backend(self, home: Path) -> GridEngine:
        """Return the builder of Grid Engine's commands."""
        from teho.schedulers.grid_engine.backend import GridEngine

        return GridEngine()

    def directives(
        self, option: Option, cluster: Cluster, options: ScriptOptions
    ) -> tuple[str, ...]:
        """Return the options of the `#$` lines."""
        from teho.schedulers.grid_engine.directives import grid_engine_directives

        return tuple(grid_engine_directives(option, cluster, options))

    def job_name(self, name: str) -> str:
        """Return a name of ASCII letters, digits and `_.+-`."""
        from teho.schedulers.grid_engine.quoting import grid_engine_name

        return grid_engine_name(name)

    def threads(self, option: Option, processes: int) -> str:
        """Return each process's part of the slots.

        If cores come with the GPUs, as on ARC4, the job has one slot: the plan's number is used.
        On several nodes, `mpirun` in a command starts a process in each slot.
        """
        if option.nodes > 1:
            launcher = launcher_of(option.request.launcher)
            return "1" if launcher.one_process else str(option.cpus_per_task)
        if "cores" in option.automatic:
            return str(max(1, option.cpus_per_task // processes))
        return part_of("NSLOTS", option.tasks_per_node * processes)

    def remarks(self, option: Option, options: ScriptOptions) -> Iterator[str]:
        """Yield that it ignores how other jobs ended."""
        if options.after:
            yield "--after: Grid Engine starts the job even if the other jobs failed"

    def allocation(self, variables: Variables) -> tuple[dict[str, Any], int | None] | None:
        """Read Grid Engine's own variables."""
        return read_job(variables)

    def job_here(self, environment: Mapping[str, str], machine: str) -> RunningJob | None:
        """Return the job of this script, or of the prolog before it."""
        number, task = environment.get("JOB_ID", ""), environment.get("SGE_TASK_ID", "undefined")
        if not number.isdecimal() or "SGE_ROOT" not in environment:
            return None
        from teho.model.job import RunningJob

        return RunningJob(
            number=number,
            key=job_id(environment),
            hosts=(machine,),
            host=machine,
            name=environment.get("JOB_NAME", ""),
            variables={"JOB_ID": number, "SGE_TASK_ID": task},
        )

    def hooks(
        self, start: str, home: Path, environment: Mapping[str, str], ask: Ask
    ) -> tuple[Hook, ...]:
        """Return the line for the files that the login shell of a job reads."""
        from teho.schedulers.grid_engine.hook import grid_engine_hooks

        return grid_engine_hooks(start, home, ask)

    def only_this_node(self, node: str, nodes: int, node_list: str) -> str:
        """Say that it only starts the script."""
        return (
            f"The job has {nodes} nodes, {node_list}, but only {node} is recorded: with Grid "
            "Engine, Teho cannot start recorders on other nodes. `mpirun teho run -- COMMAND` "
            "records all nodes."
        )

    def past_jobs(self, ask: Ask, user: str, back_s: float) -> tuple[PastJob, ...]:
        """Ask qacct."""
        from teho.schedulers.grid_engine.history import grid_engine_past_jobs

        return grid_engine_past_jobs(ask, user=user, back_s=back_s)

    def live(self, ask: Ask, user: str, groups: Sequence[str]) -> Live:
        """Ask for the queues' states, and the user's lists and projects."""
        from teho.schedulers.grid_engine.live import grid_engine_live

        return grid_engine_live(ask, user=user, groups=groups)

    def discover(
        self, ask: Ask, environment: Mapping[str, str], host: str, today: date, name: str
    ) -> Cluster:
        """Ask qconf."""
        from teho.schedulers.grid_engine.inventory import grid_engine_cluster

        return grid_engine_cluster(ask, environment=environment, host=host, today=today, name=name)
