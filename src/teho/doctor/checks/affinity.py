"""May a program run on the cores that the job was given?"""

from __future__ import annotations

from teho.doctor.checks._processes import promised
from teho.doctor.outcome import Outcome, fine, not_applicable, remark, unknown, warning
from teho.doctor.snapshot import Snapshot
from teho.explain.wording import numbered
from teho.schedulers.registry import scheduler_or_none
from teho.units import counted

__all__ = ["ABOUT", "check"]

ABOUT = "cores that a program may run on, compared with the allocation"


def check(snapshot: Snapshot) -> Outcome:
    """Compare the affinity mask with the cores that the scheduler reports."""
    if not snapshot.in_job:
        return not_applicable("this is not a job")
    requested, bound = promised(snapshot), len(snapshot.cores)
    if requested is None:
        return unknown("the scheduler does not report how many cores the job was given")
    own = requested // snapshot.local_size
    evidence = (
        ("cores given to the job on this node", requested, "cores"),
        ("cores that this program may run on", numbered(snapshot.cores), ""),
        ("tasks on this node", snapshot.local_size, ""),
    )
    # With `--hint=nomultithread` Slurm counts both threads of a core, but gives only one.
    if bound * snapshot.threads_per_core < own:
        advice = scheduler_or_none(snapshot.allocation.scheduler).advice
        return warning(
            f"A program started here may run on only {bound} of the {own} cores given to it.",
            advice.more_cores_of_job or "Find out which cores are allowed: `taskset -cp $$`.",
            *evidence,
        )
    if bound > requested:
        return remark(
            f"The job was given {counted(requested, 'core')}, but its programs may run on {bound} "
            "cores, because the node does not bind jobs to their cores.",
            f"Start at most {requested} threads and workers: "
            f"`export OMP_NUM_THREADS={max(1, own)}`.",
            *evidence,
        )
    return fine(f"programs may run on {bound} of the job's {requested} cores")
