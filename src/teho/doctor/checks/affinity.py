"""The cores that a program may run on are those that the job was given."""

from __future__ import annotations

from teho.doctor.checks._processes import promised
from teho.doctor.outcome import Outcome, fine, moot, symptom, unknown
from teho.doctor.snapshot import Snapshot
from teho.explain.wording import numbered
from teho.model.finding import Severity
from teho.schedulers.registry import scheduler_or_none

__all__ = ["ABOUT", "DECISIVE", "ID", "check"]

ID = "affinity"
ABOUT = "cores that a program may run on, against the allocation"
DECISIVE = False


def check(snapshot: Snapshot) -> Outcome:
    """Compare the affinity mask with the cores that the scheduler tells."""
    if not snapshot.in_job:
        return moot("this is not a job")
    asked, bound = promised(snapshot), len(snapshot.cores)
    if asked is None:
        return unknown("the scheduler does not report how many cores the job was given")
    own = asked // snapshot.local_size
    evidence = (
        ("given to the job here", asked, "cores"),
        ("this may run on", numbered(snapshot.cores), ""),
        ("tasks here", snapshot.local_size, ""),
    )
    # With `--hint=nomultithread` Slurm counts both threads of a core, and gives one.
    if bound * snapshot.threads_per_core < own:
        advice = scheduler_or_none(snapshot.allocation.scheduler).advice
        return [
            symptom(
                ID,
                Severity.WARNING,
                f"A program started here may run on {bound} of the {own} cores that it was given.",
                advice.more_cores_of_job or "Look at what binds it: `taskset -cp $$`.",
                *evidence,
            )
        ]
    if bound > asked:
        return [
            symptom(
                ID,
                Severity.REMARK,
                f"The job was given {asked} cores, and its programs may run on {bound}: it is not "
                "bound to its own, and others may run there.",
                f"Start no more than {asked} threads and workers: "
                f"`export OMP_NUM_THREADS={max(1, own)}`.",
                *evidence,
            )
        ]
    return fine(f"{bound} of {asked} cores")
