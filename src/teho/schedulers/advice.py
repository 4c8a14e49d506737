"""What to do in a scheduler's own options and commands; each scheduler's folder has its class.

An empty text means: this scheduler has nothing of the kind, and the general advice counts. So does
the class here, which is for runs without a scheduler.
"""

from __future__ import annotations

__all__ = ["Advice"]


class Advice:
    """Sentences and pieces of them, without a period at the end unless one is shown."""

    # Requests.

    def use_gpus(self, per_node: int, nodes: int | None) -> str:
        """Say how to request fewer GPUs.

        Args:
            per_node: GPUs on each node.
            nodes: how many nodes; None: as many as now.
        """
        del per_node, nodes
        return ""

    def start_tasks(self, gpus: int) -> str:
        """Say how to start a task for each GPU of each node."""
        del gpus
        return ""

    def cores(self, per_node: int, tasks: int | None) -> str:
        """Say how to request cores on each node.

        Args:
            per_node: how many cores.
            tasks: tasks on each node. None: not known.
        """
        del per_node, tasks
        return ""

    def memory(self, needed_gib: float, cores: int) -> str:
        """Say how to request memory on each node.

        Args:
            needed_gib: of the whole node.
            cores: of the job on the node, by which some schedulers multiply a request.
        """
        del needed_gib, cores
        return ""

    def time(self) -> str:
        """Name the option for the time limit."""
        return ""

    def later_job(self) -> str:
        """Say how to run the rest of the work in a job of its own."""
        return ""

    def many_in_one_job(self) -> str:
        """Say what to write instead of many short jobs."""
        return ""

    def leave_out(self, nodes: str) -> str:
        """Name the option that keeps a job off nodes."""
        del nodes
        return ""

    def whole_node(self) -> str:
        """Name the option for a node without other jobs."""
        return ""

    # A job that has ended.

    def account_command(self, job_id: str) -> str:
        """Name the command that asks how a job ended."""
        del job_id
        return ""

    def log(self, job_id: str, job_name: str) -> str:
        """Name the file that has what a job printed."""
        del job_id, job_name
        return ""

    def log_of_each_task(self) -> str:
        """Say how each task gets a log of its own."""
        return ""

    # A job that runs.

    def show_gpus(self) -> str:
        """Say how a step sees all GPUs of its job."""
        return ""

    def more_cores_of_job(self) -> str:
        """Say how a program may run on all cores of its job."""
        return ""

    def more_address_space(self) -> str:
        """Say how a job gets more address space."""
        return ""
