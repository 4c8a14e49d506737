"""Everything that sacct knows of jobs, read while sacct prints it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from teho.model.accounted import AccountedJob, AccountedStep
from teho.model.job import JobState
from teho.patterns import lazy_pattern
from teho.schedulers.backend import History, Selection
from teho.schedulers.slurm import text as slurm_text
from teho.schedulers.slurm import values

__all__ = ["COLUMNS", "history_of_job", "history_since", "read_jobs"]

# sacct(1), --format; 20.11 has all of them. Free texts are at the end.
COLUMNS = (
    f"{slurm_text.FACTS},JobIDRaw,User,Cluster,QOS,NNodes,NTasks,AveRSS,TRESUsageInMax,JobName,"
    "Comment,AdminComment"
)
_JOB = lazy_pattern(r"(\d+(?:_\d+|\+\d+)?)(?:\.\w+)?(?:;([\w.-]+))?", re.ASCII)
# scontrol(1), show config: the jobs of other users are hidden.
_PRIVATE = lazy_pattern(r"^PrivateData\s*=.*\bjobs\b", re.MULTILINE)


def history_of_job(job_id: str) -> History | None:
    """Return the question about all runs of one job, with its tasks, components and steps."""
    match = _JOB.fullmatch(job_id)
    if match is None:
        return None
    number, cluster = match.groups()
    where = (f"--clusters={cluster}",) if cluster else ()
    return _history(*where, "--allusers", "--duplicates", f"--jobs={number}")


def history_since(selection: Selection) -> History:
    """Return the question about all jobs of a time, with their steps."""
    # sacct has no time zone in its options: it takes local time.
    since = selection.since.astimezone()
    return _history(
        f"--user={selection.user}" if selection.user else "--allusers",
        *([f"--accounts={selection.account}"] if selection.account else []),
        *(["--duplicates"] if selection.every_run else []),
        f"--starttime={since:%Y-%m-%dT%H:%M:%S}",
    )


def _history(*selection: str) -> History:
    return History(
        argv=("sacct", *selection, *slurm_text.options_for(COLUMNS)),
        read=read_jobs,
        environment=slurm_text.ENVIRONMENT,
        private_command=("scontrol", "show", "config"),
        is_private=_is_private,
    )


def _is_private(config: str) -> bool:
    return _PRIVATE.search(config) is not None


def read_jobs(lines: Iterable[str]) -> Iterator[AccountedJob]:
    """Yield each run of a job from what sacct printed.

    Args:
        lines: with their line breaks.

    Raises:
        ValueError: the lines are not rows, or a row does not have all columns.
    """
    for row, *steps in slurm_text.runs_in(lines, COLUMNS):
        facts = slurm_text.job_facts(row, steps)
        if facts["state"] is JobState.NODE_FAILED or (facts["cpu_s"] == 0 and facts["elapsed_s"]):
            # Each process uses some time, so Slurm did not measure it. A node that failed cannot
            # report what its processes used.
            facts["cpu_s"] = None
        requested = values.tres(row["ReqTRES"])
        yield AccountedJob(
            **facts,
            scheduler="slurm",
            source="sacct",
            raw_id=values.word(row["JobIDRaw"]),
            user=values.word(row["User"]),
            cluster=values.word(row["Cluster"]),
            qos=values.word(row["QOS"]),
            cores_requested=values.count(requested.get("cpu", "")),
            memory_requested_bytes=values.size(requested.get("mem", "")),
            gpu_type=_gpu_type(row["AllocTRES"]),
            admin_comment=values.word(row["AdminComment"]),
            steps=tuple(map(_step, steps)),
        )


@lru_cache(maxsize=1024)
def _gpu_type(tres: str) -> str:
    """Return `v100` of `gres/gpu:v100=2`; empty if there are several types, or none is named."""
    types = [name.partition(":")[2] for name in values.tres(tres) if name.startswith("gres/gpu:")]
    return types[0] if len(types) == 1 else ""


def _step(row: slurm_text.Row) -> AccountedStep:
    state = values.state(row["State"])
    exit_code, signal_number = values.ending(state, *values.exit_status(row["ExitCode"]))
    elapsed = values.count(row["ElapsedRaw"])
    used = values.tres(row["TRESUsageInMax"]) if "gpu" in row["TRESUsageInMax"] else {}
    gpu_percent = values.count(used.get("gres/gpuutil", ""))
    return AccountedStep(
        name=row["JobID"].partition(".")[2],
        title=row["JobName"],
        state=state,
        state_as_written=row["State"],
        exit_code=exit_code,
        signal=signal_number,
        started_at=values.moment(row["Start"]),
        elapsed_s=None if elapsed is None else float(elapsed),
        tasks=values.count(row["NTasks"]),
        nodes=values.count(row["NNodes"]),
        cores=values.count(values.tres(row["AllocTRES"]).get("cpu", "")),
        cpu_s=values.cpu_seconds(row["TotalCPU"]),
        memory_peak_bytes=values.size(row["MaxRSS"]) or None,
        memory_mean_bytes=values.size(row["AveRSS"]) or None,
        gpu_peak_percent=None if gpu_percent is None else float(gpu_percent),
        gpu_memory_peak_bytes=values.gpu_memory(used.get("gres/gpumem", "")),
        energy_j=values.energy(row["ConsumedEnergyRaw"]),
    )
