"""The accounting of the scheduler as facts of the report on a job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from teho.model.document import Fact
from teho.model.job import Job
from teho.show.build.jobs import state_sentence
from teho.units import format_duration

__all__ = ["job_facts"]


def job_facts(jobs: Sequence[Job]) -> Iterator[Fact]:
    """Yield the state of a job, or of the tasks of an array, and the scheduler's figures.

    These figures are separate from the figures of the recording.
    """
    if not jobs:
        return
    sentence = state_sentence(jobs)
    job = jobs[0]
    if len(jobs) == 1 and job.elapsed_s is not None:
        sentence += f" after {format_duration(job.elapsed_s)}"
        sentence += f" of {format_duration(job.time_limit_s)}" if job.time_limit_s else ""
    yield Fact("scheduler_state", "State in the scheduler", sentence)
    if len(jobs) > 1:
        return
    note = "reported by the scheduler"
    if job.cpu_s is not None:
        yield Fact("scheduler_cpu_s", "CPU time", job.cpu_s, "s", note)
    if job.memory_peak_bytes is not None:
        yield Fact(
            "scheduler_memory_peak_bytes",
            "Memory of a task",
            job.memory_peak_bytes,
            "bytes",
            f"at most, {note}",
        )
    if job.energy_j:
        yield Fact("scheduler_energy_j", "Energy", job.energy_j, "J", note)
