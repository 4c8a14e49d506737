"""What a launcher says about itself; each file beside this one has a class of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["DEFAULTS", "FOR_EACH_TASK", "Launcher"]


class Launcher:
    """One launcher. The name of its file is its name, as in `--launcher NAME`."""

    name: str = ""
    """The file's."""
    help: str = ""
    """One line: what it does."""
    on_one_node: str = ""
    """What it does in a job of one node, for the table in docs/scripts.md."""
    on_nodes: str = ""
    """What it does in a job of several nodes, for that table."""
    place: int = 100
    """Its place in the list of launchers; those with small numbers come first."""
    schedulers: frozenset[str] = frozenset()
    """Names of the schedulers on which it works; empty: all of them."""

    task_per_gpu: bool = False
    """Whether the scheduler starts one task per GPU; otherwise it starts one per node."""
    one_process: bool = False
    """Whether it starts one process in all, which has no use for a second node."""
    own_processes: bool = False
    """Whether it starts a process per GPU itself, and takes Python scripts without `python`."""
    through_teho: bool = False
    """Whether each task goes through `teho launch`, which sets ranks, cores and threads."""
    framework: str = ""
    """Whose software the script loads if the user names none; empty: as the command looks."""
    other_program: str = ""
    """Its option for a program that is not a Python script."""
    variables: Mapping[str, str] = MappingProxyType({})
    """Variables that the script sets in each process, as expressions of bash."""

    templates: Mapping[str, str] = MappingProxyType({})
    """Its parts of a script, as Jinja templates with the names of docs/scripts.md:

    - `node`: the command for the processes of one node;
    - `slurm`: the whole command in Slurm's script, on any number of nodes. `step` starts its tasks,
      and makes a launcher ignore the signal for the program; `bare_step` only starts them;
    - `slurm_comment`: the line before it.

    A part that is missing is the one of `DEFAULTS`. Part `PART` is the template `NAME.PART.j2`.
    """

    def works_on(self, scheduler: str) -> bool:
        """Return whether it works on a scheduler."""
        return not self.schedulers or scheduler in self.schedulers

    def tasks_per_node(self, gpus_per_node: int, *, starts_tasks: bool) -> int:
        """Return how many tasks each node has.

        Args:
            gpus_per_node: 0: a job without GPUs.
            starts_tasks: whether the scheduler starts tasks, as Slurm does.
        """
        del starts_tasks
        return max(1, gpus_per_node) if self.task_per_gpu else 1

    def starts_one(self, *, starts_tasks: bool) -> bool:
        """Return whether it starts one process in all.

        Args:
            starts_tasks: whether the scheduler starts tasks, as Slurm does.
        """
        del starts_tasks
        return self.one_process

    def meets(self, nodes: int, processes: int) -> bool:
        """Return whether the script must give the processes an address to meet at.

        Args:
            nodes: of the job.
            processes: of the whole job.
        """
        del nodes, processes
        return False

    def template(self, part: str) -> str | None:
        """Return a part of the script; None: there is no such part."""
        return self.templates.get(part, DEFAULTS.get(part))


_EACH = '{{ "a process for each GPU" if gpus_per_node else "the program" }}'
DEFAULTS: Mapping[str, str] = MappingProxyType(
    {
        "node": "{{ program }}",
        "slurm": '{{ step }}{% include launcher ~ ".node.j2" %}',
        "slurm_comment": f"# {{{{ launcher }}}}, once on each node; it starts {_EACH}.",
    }
)
"""Parts of the script of a launcher that does not say otherwise."""
FOR_EACH_TASK = '# The program, once {{ "for each GPU" if gpus_per_node else "on each node" }}'
"""How the comment begins if the scheduler starts a task per GPU."""
