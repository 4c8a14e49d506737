"""The variables that programs set in the tasks that they start: a small class for each program.

`teho launch` and `teho run` read them in every task of a job. So this is one file, and it imports
nothing: the files of the other launchers are not loaded.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["INNERMOST_FIRST", "TaskVariables"]


class TaskVariables:
    """Names of one program's variables; empty: the program has no such variable."""

    title: str = ""
    """Name of the program, for messages."""
    sign: str = ""
    """A variable that is set in each of its tasks, together with the rank."""
    rank: str = ""
    size: str = ""
    local_rank: str = ""
    local_size: str = ""
    node_rank: str = ""

    def started(self, environment: Mapping[str, str]) -> bool:
        """Return whether this program started the task."""
        return bool(environment.get(self.sign) and environment.get(self.rank))

    def launch_id(self, environment: Mapping[str, str]) -> str:
        """Return an id that only this launch in the job has; empty: not known."""
        names = (
            "PMIX_NAMESPACE",
            "OMPI_MCA_ess_base_jobid",
            "OMPI_MCA_orte_ess_jobid",
            "PMI_JOBID",
        )
        return next((environment[name] for name in names if environment.get(name)), "")


class _Torchrun(TaskVariables):
    title = "torchrun"
    sign = "TORCHELASTIC_RUN_ID"
    rank, size = "RANK", "WORLD_SIZE"
    local_rank, local_size = "LOCAL_RANK", "LOCAL_WORLD_SIZE"
    node_rank = "GROUP_RANK"

    def launch_id(self, environment: Mapping[str, str]) -> str:
        run_id = environment["TORCHELASTIC_RUN_ID"]
        # `none` is the default id, so several runs may have it.
        known = run_id if run_id != "none" else environment.get("MASTER_PORT", "")
        return f"{known}.{environment.get('TORCHELASTIC_RESTART_COUNT', '0')}"


class _Horovodrun(TaskVariables):
    title = "horovodrun"
    sign = "HOROVOD_GLOO_RENDEZVOUS_PORT"
    rank, size = "HOROVOD_RANK", "HOROVOD_SIZE"
    local_rank, local_size = "HOROVOD_LOCAL_RANK", "HOROVOD_LOCAL_SIZE"
    node_rank = "HOROVOD_CROSS_RANK"

    def launch_id(self, environment: Mapping[str, str]) -> str:
        return environment[self.sign]


class _OpenMpi(TaskVariables):
    # OMPI_COMM_WORLD_NODE_RANK counts processes on a node, not nodes.
    title = "Open MPI"
    sign = rank = "OMPI_COMM_WORLD_RANK"
    size = "OMPI_COMM_WORLD_SIZE"
    local_rank, local_size = "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"


class _Hydra(TaskVariables):
    title = "MPI (Hydra)"
    rank, size = "PMI_RANK", "PMI_SIZE"
    sign = local_size = "MPI_LOCALNRANKS"
    local_rank = "MPI_LOCALRANKID"


class _Srun(TaskVariables):
    title = "Slurm"
    sign = "SLURM_STEP_ID"
    rank = "SLURM_PROCID"


class _Pmi(TaskVariables):
    title = "PMI"
    sign = rank = "PMI_RANK"
    size = "PMI_SIZE"
    local_rank, local_size = "PMI_LOCAL_RANK", "PMI_LOCAL_SIZE"


class _Plain(TaskVariables):
    title = "RANK and WORLD_SIZE"
    rank = "RANK"
    sign = size = "WORLD_SIZE"
    local_rank, local_size = "LOCAL_RANK", "LOCAL_WORLD_SIZE"
    node_rank = "NODE_RANK"


INNERMOST_FIRST: tuple[TaskVariables, ...] = (
    _Torchrun(),
    _Horovodrun(),
    _OpenMpi(),
    _Hydra(),
    _Srun(),
    _Pmi(),
    _Plain(),
)
"""If one program starts another, the inner one comes first: mpirun starts its daemons with srun,
and torchrun is started in tasks."""
