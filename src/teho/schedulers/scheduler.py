"""What Teho knows of a scheduler without asking it; each scheduler's folder has a class of it.

The planner, the checks and the screens ask this class instead of comparing names. A method that a
folder does not have means: the scheduler cannot do it, and there is nothing to say about it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from teho.schedulers.advice import Advice

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import date
    from pathlib import Path

    from teho.model.cluster import Cluster
    from teho.model.member import Live
    from teho.model.plan import Option
    from teho.schedulers.backend import Backend
    from teho.schedulers.inventory import Ask
    from teho.schedulers.script.options import ScriptOptions
    from teho.schedulers.variables import Variables

__all__ = ["Scheduler"]


class Scheduler:
    """One kind of scheduler. Nothing here runs a command, except through an `Ask`."""

    name: str = ""
    """The folder's, as in a cluster's file."""
    title: str = ""
    """On screens and in sentences, such as `Grid Engine`."""
    precedence: int = 100
    """If the variables of several schedulers are in one environment, the job is of the lowest."""
    advice: Advice = Advice()
    """What to do about it, in this scheduler's options and commands."""

    # What it can do.

    starts_tasks: bool = False
    """Whether it starts the tasks of a job, on several nodes too, as `srun` does."""
    is_this_machine: bool = False
    """Whether jobs run on this machine, whichever cluster they are planned for: without its
    modules, its disks and its bill."""
    has_associations: bool = False
    """Whether accounts and QOS decide who may use a partition, and how much of it."""
    has_slots: bool = False
    """Whether cores are slots, which parallel environments give and resource quotas count."""
    request_options: frozenset[str] = frozenset()
    """Those of `qos`, `reservation`, `licenses` and `exclusive` that it has."""
    partition_word: str = "partition"
    """What it calls a partition."""
    reports_cores: bool = False
    """Whether it reports how many cores of a node a job was given."""
    shows_comments: bool = False
    """Whether its queue shows the comment of every job, by which a submission is found again."""
    tells_gpus: bool = False
    """Whether a job without GPUs is known by the absence of their variables."""

    # Its variables.

    job_variables: str = ""
    """How the variables begin that it sets in each job, such as `SLURM_`."""
    account_variable: str = ""
    """The user's own variable that names the account if the script names none."""

    # Where its things are.

    estimate_source: str = "the scheduler, asked now"
    """What it was asked for a plan, as a source."""
    inventory_command: str = ""
    """The command by which `teho clusters discover` knows that it is here."""

    def backend(self, home: Path) -> Backend:
        """Return what builds its commands and reads its answers.

        Args:
            home: where Teho keeps its own things.
        """
        raise NotImplementedError

    # Scripts. The template is `NAME.sh.j2` in the folder.

    def directives(
        self,
        option: Option,
        cluster: Cluster,
        options: ScriptOptions,
    ) -> tuple[str, ...]:
        """Return the options that a script begins with.

        Raises:
            InputError: something cannot be said to this scheduler.
        """
        del option, cluster, options
        return ()

    def job_name(self, name: str) -> str:
        """Return the nearest name that it can hold."""
        return name

    def threads(self, option: Option, processes: int) -> str:
        """Return how many threads each process should have, as an expression of bash.

        Args:
            option: what to ask for.
            processes: how many share the cores of a task.
        """
        return str(max(1, option.cpus_per_task // processes))

    def remarks(self, option: Option, options: ScriptOptions) -> Iterator[str]:
        """Yield what it cannot do as it was asked for, one sentence each."""
        del option, options
        yield from ()

    # Jobs.

    def allocation(self, variables: Variables) -> tuple[dict[str, Any], int | None] | None:
        """Return the job's share of this node, and the memory asked for; None: not in its job."""
        del variables
        return None

    def only_this_node(self, node: str, nodes: int, node_list: str) -> str:
        """Say why only one of a job's nodes is recorded; empty: all of them can be.

        Args:
            node: the one.
            nodes: how many the job has.
            node_list: their names.
        """
        del node, nodes, node_list
        return ""

    def unused_variables(self, environment: Mapping[str, str]) -> str:
        """Say which variables would change a job and are left out; empty: none."""
        del environment
        return ""

    # The running scheduler.

    def live(self, ask: Ask, user: str, groups: Sequence[str]) -> Live | None:
        """Ask for partitions and the user's rights; None: it has no such answers."""
        del ask, user, groups
        return None

    def discover(
        self, ask: Ask, environment: Mapping[str, str], host: str, today: date, name: str
    ) -> Cluster:
        """Ask for everything that a cluster's file holds.

        Raises:
            SchedulerError: it does not answer.
        """
        del ask, environment, host, today, name
        raise NotImplementedError
