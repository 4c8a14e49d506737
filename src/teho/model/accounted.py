"""A job as a scheduler's accounting describes it, recorded by Teho or not."""

from __future__ import annotations

from datetime import datetime

import msgspec

from teho.model.job import Job, JobState

__all__ = ["AccountedJob", "AccountedStep"]


class AccountedStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One step of a job. `None` and empty mean: unknown."""

    name: str
    """Slurm's name of the step: `batch`, `extern`, `interactive`, or a number."""
    title: str = ""
    """Name of the program that `srun` started."""
    state: JobState
    state_as_written: str = ""
    exit_code: int | None = None
    signal: int | None = None
    started_at: datetime | None = None
    """UTC."""
    elapsed_s: float | None = None
    tasks: int | None = None
    nodes: int | None = None
    cores: int | None = None
    cpu_s: float | None = None
    """CPU time of all tasks."""
    memory_peak_bytes: int | None = None
    """Largest resident set of one task."""
    memory_mean_bytes: int | None = None
    """Mean, over the tasks, of the peak of each task."""
    gpu_peak_percent: float | None = None
    """Highest sample of the utilisation that one task had on its GPUs; 0 can also mean that Slurm
    cannot measure these GPUs."""
    gpu_memory_peak_bytes: int | None = None
    """Largest GPU memory of one task; 0 as above."""
    energy_j: float | None = None
    """Energy of the nodes during the step, with the work of other jobs."""


class AccountedJob(Job, frozen=True, kw_only=True, omit_defaults=True):
    """One run of a job, of one task of an array, or of one component of a heterogeneous job."""

    scheduler: str
    """Name of the scheduler's folder, such as `slurm`."""
    source: str
    """Command that printed the figures: `sacct`, `qacct`, or `qstat` for jobs that wait or run."""
    raw_id: str = ""
    """Slurm's own number of a task of an array or of a component, as in `SLURM_JOB_ID`."""
    user: str = ""
    cluster: str = ""
    """Name that the scheduler gives the cluster."""
    qos: str = ""
    cores_requested: int | None = None
    """CPUs of the request; whole nodes can have more."""
    memory_requested_bytes: int | None = None
    """Memory of the request; whole nodes can have more."""
    gpu_type: str = ""
    """Type of the GPUs, if the accounting has it and all GPUs have the same type."""
    admin_comment: str = ""
    """Text that the site stored with the job, such as the summary of Jobstats."""
    steps: tuple[AccountedStep, ...] = ()
    """In the order of their start; empty for Grid Engine."""
    read_written_bytes: int | None = None
    """Bytes that the job read and wrote; only Grid Engine has this sum."""
    used_until_now: str = ""
    """Command that printed what the job has used until now, such as `sstat`; empty: CPU time,
    memory and GPUs are those at the end of the job, or not known."""
    hosts: tuple[str, ...] = ()
    """Nodes of the job, if the scheduler has a record for each of them (Grid Engine)."""

    @property
    def more_cores_than_requested(self) -> bool:
        """Whether the job got cores that it did not request, as on whole nodes.

        Some sites count two CPUs for each core, and round a request up to whole cores.
        """
        return (self.cores or 0) > 2 * (self.cores_requested or self.cores or 0)

    @property
    def more_memory_than_requested(self) -> bool:
        """Whether the job got memory that it did not request, as on whole nodes."""
        requested = self.memory_requested_bytes
        return requested is not None and (self.memory_bytes or 0) > requested

    @property
    def wait_s(self) -> float | None:
        """Time from the submission to the start; None: not started, or not known."""
        if self.submitted_at is None or self.started_at is None:
            return None
        wait_s = (self.started_at - self.submitted_at).total_seconds()
        return wait_s if wait_s >= 0 else None
