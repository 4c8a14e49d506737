"""A job that is recorded as a whole: by the `teho run` in its script, or from outside.

Its processes are counted on all of its nodes, whichever step has started them: those of the
batch script's own node by the recorder beside the program, those of the others by a remote.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from teho.model.run import Run, Step
from teho.observe.job_processes import RECORDER
from teho.observe.plan import Orders, RecordingPlan
from teho.observe.recording import Recording, describe
from teho.observe.remote_recorders import RemoteRecorders
from teho.observe.wanted import Wanted
from teho.schedulers.slurm.overlap import RunningJob, step_beside
from teho.store.layout import create_run_directory, safe_name

__all__ = ["begin_job", "start_remote_recorders"]

# What a step is told of itself alone, and the batch script of the job.
_OF_THE_JOB = (
    "SLURM_ARRAY_JOB_ID",
    "SLURM_ARRAY_TASK_ID",
    "SLURM_CLUSTER_NAME",
    "SLURM_JOB_END_TIME",
    "SLURM_JOB_START_TIME",
    "SLURM_MEM_PER_CPU",
    "SLURM_MEM_PER_GPU",
    "SLURM_MEM_PER_NODE",
)


def begin_job(
    wanted: Wanted, started_s: float, job: RunningJob, *, mark: str, teho: Sequence[str]
) -> tuple[Recording, RemoteRecorders | None]:
    """Create the directory of a run, write down what runs, and have the other nodes recorded.

    Args:
        wanted: what is to be recorded.
        started_s: monotonic time of the program's start.
        job: whose script this is.
        mark: by which the program's processes are known.
        teho: the command that starts this very Teho.

    Raises:
        OSError: it cannot be written.
    """
    run = describe(wanted, started_s)
    run = msgspec.structs.replace(run, step=_step(job, run.id))
    directory = create_run_directory(wanted.home, run.id, msgspec.json.encode(run)).absolute()
    plan = RecordingPlan(
        directory=str(directory),
        node=safe_name(job.host),
        period_s=wanted.period_s,
        started_s=started_s,
        started_at=run.started_at,
        supervisor_pid=os.getpid(),
        node_count=len(job.hosts),
        job=job.number,
        mark=mark,
        spool=wanted.spool,
    )
    told = {name: os.environ[name] for name in _OF_THE_JOB if name in os.environ}
    remote = None
    if job.others:
        remote = start_remote_recorders(
            job, job.others, wanted.home, run, plan, teho=teho, told=told
        )
        plan = msgspec.structs.replace(plan, apart=(remote.pid,) if remote.pid else ())
    return Recording(directory, run, plan if job.host else None, began=True), remote


def _step(job: RunningJob, run_id: str) -> Step | None:
    """Return what stands for a job of several nodes; None for one that is all here."""
    if not job.others:
        return None
    return Step(
        key=f"{job.key}-{run_id}",
        started_by="Slurm",
        began_on=safe_name(job.host or job.hosts[0]),
        task_count=1,
        node_count=len(job.hosts),
        hosts=job.hosts,
    )


def start_remote_recorders(
    job: RunningJob,
    hosts: Sequence[str],
    home: Path,
    run: Run,
    plan: RecordingPlan,
    *,
    teho: Sequence[str],
    told: Mapping[str, str],
) -> RemoteRecorders:
    """Start recorders on some nodes of a job.

    Args:
        job: the job.
        hosts: which of its nodes.
        home: the directory of all recordings.
        run: its description.
        plan: as far as it is the same for all nodes.
        teho: the command that starts this very Teho.
        told: variables of the job's script.
    """
    orders = Orders(plan=plan, description=run, home=str(home.absolute()), environment=dict(told))
    words, environment = [*teho, "record-node"], {**os.environ, RECORDER: job.number}
    return RemoteRecorders(
        lambda some: step_beside(job.number, some, words, environment),
        hosts,
        plan.directory,
        msgspec.to_builtins(orders),
    )
