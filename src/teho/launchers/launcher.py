"""The base class of launchers; each file of this folder has one subclass."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

__all__ = ["DEFAULTS", "FOR_EACH_TASK", "Launcher", "on_several_nodes"]


class Launcher:
    """One launcher. Its name is the name of its file, as in `--launcher NAME`."""

    name: str = ""
    """Name of its file."""
    help: str = ""
    """Description in one line."""
    on_one_node: str = ""
    """Description for a job of one node, for the table in docs/scripts.md."""
    on_nodes: str = ""
    """Description for a job of several nodes, for the same table."""
    place: int = 100
    """Position in the list of launchers; small numbers come first."""
    schedulers: frozenset[str] = frozenset()
    """Names of the schedulers on which it works; empty: all."""

    task_per_gpu: bool = False
    """Whether the scheduler starts one task per GPU; otherwise it starts one per node."""
    one_process: bool = False
    """Whether it starts only one process, which cannot use a second node."""
    own_processes: bool = False
    """Whether it starts a process per GPU itself, and takes Python scripts without `python`."""
    through_teho: bool = False
    """Whether each task goes through `teho launch`, which sets ranks, cores and threads."""
    framework: str = ""
    """Framework to load if the user names none; empty: the script guesses from the command."""
    needs_horovod: bool = False
    """Whether the software must contain Horovod."""
    other_program: str = ""
    """Its option for a program that is not a Python script."""
    address_for: Literal["", "nodes", "processes"] = ""
    """The script sets a meeting address if the job has several of these; empty: never."""
    programs: tuple[str, ...] = ()
    """Words that start it in a command, if it starts the processes of a node itself."""
    processes_option: str = ""
    """Its option for the number of processes, with hyphens."""
    processes_variable: str = ""
    """Variable for the same number; empty: none."""
    counts_all_nodes: bool = False
    """Whether this number is for all nodes together, not for one node."""
    variables: Mapping[str, str] = MappingProxyType({})
    """Variables that the script sets in each process, as expressions of bash."""

    templates: Mapping[str, str] = MappingProxyType({})
    """Its parts of a script, as Jinja templates with the names of docs/scripts.md:

    - `node`: the command for the processes of one node;
    - `slurm`: the whole command in a script for Slurm, on any number of nodes. `step` starts the
      tasks, and makes a launcher ignore the signal for the program. `bare_step` only starts them;
    - `slurm_comment`: the line before the command;
    - `mpirun` and `mpirun_comment`: the same on several nodes of a cluster whose scheduler only
      starts the script. Without `mpirun`, it cannot start there.

    `DEFAULTS` has the missing parts. Part `PART` is the template `NAME.PART.j2`.
    """

    def works_on(self, scheduler: str) -> bool:
        """Return whether it works on a scheduler."""
        return not self.schedulers or scheduler in self.schedulers

    def tasks_per_node(self, gpus_per_node: int, *, starts_tasks: bool) -> int:
        """Return the number of tasks per node.

        Args:
            gpus_per_node: 0: a job without GPUs.
            starts_tasks: whether the scheduler starts tasks, as Slurm does.
        """
        del starts_tasks
        return max(1, gpus_per_node) if self.task_per_gpu else 1

    def starts_one(self, *, starts_tasks: bool, nodes: int) -> bool:
        """Return whether it starts only one process.

        Args:
            starts_tasks: whether the scheduler starts tasks, as Slurm does.
            nodes: of the job.
        """
        del starts_tasks, nodes
        return self.one_process

    def meets(self, nodes: int, processes: int) -> bool:
        """Return whether the script must set an address at which the processes meet.

        Args:
            nodes: of the job.
            processes: of the whole job.
        """
        counts = {"nodes": nodes, "processes": processes}
        return counts.get(self.address_for, 0) > 1

    def template(self, part: str) -> str | None:
        """Return a part of the script; None: it has no such part."""
        return self.templates.get(part, DEFAULTS.get(part))


_EACH = '{{ "a process for each GPU" if gpus_per_node else "the program" }}'
DEFAULTS: Mapping[str, str] = MappingProxyType(
    {
        "node": "{{ program }}",
        "slurm": '{{ step }}{% include launcher ~ ".node.j2" %}',
        "slurm_comment": f"# {{{{ launcher }}}} runs once on each node, and starts {_EACH}.",
    }
)
"""Parts of the script for launchers that do not define them."""
FOR_EACH_TASK = '# The program runs once {{ "for each GPU" if gpus_per_node else "on each node" }}'
"""Beginning of the comment if the scheduler starts a task per GPU."""


def on_several_nodes(text: str, part: str = "slurm") -> str:
    """Return a template with this text for several nodes, and the default part for one node."""
    return f"{{% if nodes > 1 %}}{text}{{% else %}}{DEFAULTS[part]}{{% endif %}}"
