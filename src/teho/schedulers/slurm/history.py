"""How long the user's past jobs waited, from sacct."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from teho.model.plan import PastJob
from teho.schedulers.inventory import Ask, answer_now
from teho.schedulers.slurm import values
from teho.schedulers.slurm.rows import columns

__all__ = ["slurm_past_jobs"]

_COLUMNS = "Partition,AllocTRES,Eligible,Start"


def slurm_past_jobs(ask: Ask, *, user: str, back_s: float) -> tuple[PastJob, ...]:
    """Return the user's jobs that have started; none also if sacct does not answer in time.

    The wait begins when the job could start (`Eligible`), so it does not include `--after`.
    """
    text = answer_now(
        ask, "sacct", "--allocations", "--noheader", "--parsable2", f"--user={user}",
        f"--starttime=now-{int(back_s // 3600)}hours", f"--format={_COLUMNS}",
    )  # fmt: skip
    return tuple(_read(text or ""))


def _read(text: str) -> Iterator[PastJob]:
    for row in columns(text, _COLUMNS):
        try:
            # Both are local times: a change of the clock between them is an error of one hour.
            eligible, start = map(datetime.fromisoformat, (row["Eligible"], row["Start"]))
        except (KeyError, ValueError):
            continue  # It has not started, or is not a row.
        tres = values.tres(row["AllocTRES"])
        cores = values.count(tres.get("cpu", ""))
        if cores and start >= eligible:
            yield PastJob(
                partition=row["Partition"],
                gpus=values.count(tres.get("gres/gpu", "")) or 0,
                cores=cores,
                wait_s=(start - eligible).total_seconds(),
            )
