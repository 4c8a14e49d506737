"""The description of a scheduler: its abilities, variables and words. Each folder has a subclass.

The planner, the checks and the screens ask this class. They do not compare names. The class itself
describes a scheduler that has none of the abilities.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from teho.schedulers.advice import Advice

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import date
    from pathlib import Path

    from teho.model.always import Hook
    from teho.model.cluster import Cluster
    from teho.model.job import RunningJob
    from teho.model.member import GpuNodes, Live
    from teho.model.plan import Option, PastJob
    from teho.schedulers.backend import Backend
    from teho.schedulers.inventory import Ask
    from teho.schedulers.script.options import ScriptOptions
    from teho.schedulers.variables import Variables

__all__ = ["Scheduler", "part_of"]


def part_of(variable: str, shares: int) -> str:
    """Return a variable's value divided by a number of shares, as an expression of bash.

    It is rounded up, so it is never 0: how many cores a job gets depends on the site.
    """
    return f"${variable}" if shares == 1 else f"$((({variable} + {shares - 1}) / {shares}))"


class Scheduler:
    """One scheduler. Its methods only run commands through an `Ask`."""

    name: str = ""
    """Name of its folder, as in a cluster's file."""
    title: str = ""
    """Name on screens and in sentences, such as `Grid Engine`."""
    precedence: int = 100
    """If an environment has variables of several schedulers, the lowest number counts."""
    advice: Advice = Advice()
    """Advice in this scheduler's options and commands."""

    # Its abilities.

    starts_tasks: bool = False
    """Whether it starts the tasks of a job, also on several nodes, as `srun` does."""
    is_this_machine: bool = False
    """Whether jobs run on this machine, for any cluster that they are planned for. The modules,
    disks and bills of that cluster then do not apply."""
    has_associations: bool = False
    """Whether accounts and QOS limit who may use a partition, and how much of it."""
    has_slots: bool = False
    """Whether cores are slots, with parallel environments and resource quotas."""
    request_options: frozenset[str] = frozenset()
    """Which of `qos`, `reservation`, `licenses` and `exclusive` it has."""
    partition_word: str = "partition"
    """Its word for a partition."""
    reports_cores: bool = False
    """Whether it reports how many cores of a node a job got."""
    shows_comments: bool = False
    """Whether its queue shows the comment of every job, so a submission can be found again."""
    reports_gpus: bool = False
    """Whether a job without variables for GPUs has no GPUs."""

    # Its variables.

    job_variables: str = ""
    """Prefix of the variables that it sets in each job, such as `SLURM_`."""
    account_variable: str = ""
    """The user's variable that names the account if the script names none."""

    # Its commands.

    estimate_source: str = "the scheduler, read just now"
    """Source of the facts that it was asked for a plan."""
    inventory_command: str = ""
    """If this command exists, `teho clusters discover` asks this scheduler."""

    accounting_command: str = ""
    """If this command exists, `teho report` and `teho jobs` ask this scheduler's accounting."""
    ping_command: tuple[str, ...] = ()
    """Command that asks whether the scheduler answers, if users can record all jobs (`hooks`)."""

    def backend(self, home: Path) -> Backend:
        """Return the object that builds its commands and reads its answers.

        Args:
            home: Teho's own directory.
        """
        raise NotImplementedError

    # Scripts. The template is `NAME.sh.j2` in the folder.

    def directives(
        self,
        option: Option,
        cluster: Cluster,
        options: ScriptOptions,
    ) -> tuple[str, ...]:
        """Return the options at the beginning of a script.

        Raises:
            InputError: this scheduler cannot express something.
        """
        return ()

    def job_name(self, name: str) -> str:
        """Return the most similar name that it accepts."""
        return name

    def threads(self, option: Option, processes: int) -> str:
        """Return the number of threads of each process, as an expression of bash.

        Args:
            option: the request.
            processes: number of processes that share the cores of a task.
        """
        return str(max(1, option.cpus_per_task // processes))

    def remarks(self, option: Option, options: ScriptOptions) -> Iterator[str]:
        """Yield a sentence for each wish that it cannot fulfil exactly."""
        yield from ()

    # Jobs.

    def allocation(self, variables: Variables) -> tuple[dict[str, Any], int | None] | None:
        """Return the job's share of this node, and the memory it requested; None: not its job."""
        return None

    def job_here(self, environment: Mapping[str, str], machine: str) -> RunningJob | None:
        """Return the job whose script runs this process; None: there is none.

        Args:
            environment: variables of this process.
            machine: name of this machine.

        Raises:
            InputError: the job's list of nodes cannot be read.
        """
        return None

    def hooks(
        self, start: str, home: Path, environment: Mapping[str, str], ask: Ask
    ) -> tuple[Hook, ...]:
        """Return the lines of a user's files with which each job starts the recorder.

        Empty: users cannot do this, only an administrator can.

        Args:
            start: path of the program that starts the recorder.
            home: the user's home directory.
            environment: variables of the user's shell.
            ask: runs a command that only asks.

        Raises:
            InputError: the lines cannot be added, such as for an unknown shell.
        """
        return ()

    def only_this_node(self, node: str, nodes: int, node_list: str) -> str:
        """Say why only one of a job's nodes is recorded; empty: all can be recorded.

        Args:
            node: the recorded node.
            nodes: number of nodes of the job.
            node_list: their names.
        """
        return ""

    def unused_variables(self, environment: Mapping[str, str]) -> str:
        """Say which variables are ignored because they would change a job; empty: none."""
        return ""

    # The running scheduler.

    def past_jobs(self, ask: Ask, user: str, back_s: float) -> tuple[PastJob, ...]:
        """Return the user's jobs of the last `back_s` seconds; empty also if it is not known."""
        del ask, user, back_s
        return ()

    def live(self, ask: Ask, user: str, groups: Sequence[str]) -> Live | None:
        """Ask for partitions and the user's rights; None: it has no such command."""
        return None

    def gpu_nodes(self, ask: Ask) -> GpuNodes:
        """Ask in which partitions every node has GPUs; empty: not known."""
        del ask
        return {}

    def discover(
        self, ask: Ask, environment: Mapping[str, str], host: str, today: date, name: str
    ) -> Cluster:
        """Ask for all facts of a cluster's file.

        Raises:
            SchedulerError: it does not answer.
        """
        raise NotImplementedError
