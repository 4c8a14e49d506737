"""Advice in a scheduler's options and commands. Each scheduler's folder has its own class.

An empty text means that the scheduler has no such option or command. The general advice is then
shown. The class here is for runs without a scheduler: all its texts are empty.
"""

from __future__ import annotations

import math

__all__ = ["Advice"]


class Advice:
    """Sentences and parts of sentences. Only whole sentences end with a period."""

    time: str = ""
    """The option for the time limit."""
    later_job: str = ""
    """How to run the rest of the work in another job."""
    many_in_one_job: str = ""
    """What to write instead of many short jobs."""
    whole_node: str = ""
    """The option for a node without other jobs."""
    log_of_each_task: str = ""
    """How each task gets its own log."""
    show_gpus: str = ""
    """How a step sees all GPUs of its job."""
    more_cores_of_job: str = ""
    """How a program may run on all cores of its job."""
    more_address_space: str = ""
    """How a job gets more address space."""

    def use_gpus(self, per_node: int, nodes: int | None) -> str:
        """Say how to request fewer GPUs.

        Args:
            per_node: GPUs on each node.
            nodes: number of nodes; None: the same as now.
        """
        return ""

    def start_tasks(self, gpus: int) -> str:
        """Say how to start a task for each GPU of each node."""
        return ""

    def cores(self, per_node: int, tasks: int | None) -> str:
        """Say how to request cores on each node.

        Args:
            per_node: number of cores.
            tasks: tasks on each node. None: not known.
        """
        return ""

    def memory(self, needed_gib: float, cores: int) -> str:
        """Say how to request memory on each node.

        Args:
            needed_gib: memory of the whole node.
            cores: cores of the job on the node. Some schedulers multiply a request by them.
        """
        return ""

    def time_limit(self, seconds: float) -> str:
        """Return what to request for a time limit, rounded up to whole seconds."""
        minutes, rest_s = divmod(math.ceil(seconds), 60)
        clock = f"{minutes // 60:02d}:{minutes % 60:02d}:{rest_s:02d}"
        return self.time.replace("HH:MM:SS", clock) or f"a time limit of {clock}"

    def leave_out(self, nodes: str) -> str:
        """Return the option that excludes nodes."""
        return ""

    def account_command(self, job_id: str) -> str:
        """Return the command that shows how a job ended."""
        return ""

    def running_command(self, job_id: str) -> str:
        """Return the command that shows what a running job has used."""
        return ""

    def log(self, job_id: str, job_name: str) -> str:
        """Return the file that has the output of a job."""
        return ""
