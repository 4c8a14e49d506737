"""Records a whole job: by the `teho run` in its script, or from outside.

The processes of all its steps are counted, on all nodes. On the node of the batch script, the
recorder of `teho run` counts them. Each other node has a remote recorder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from teho.model.job import RunningJob
from teho.model.run import Run, Step
from teho.observe.job_processes import RECORDER
from teho.observe.plan import Orders, RecordingPlan
from teho.observe.recording import Recording, describe
from teho.observe.remote_recorders import RemoteRecorders
from teho.observe.wanted import Wanted
from teho.schedulers.slurm.overlap import step_in_job
from teho.store.layout import create_run_directory, safe_name

__all__ = ["begin_job", "start_remote_recorders", "step_of_job"]

# In a step, some of these variables describe the step. In the batch script, they describe the job.
_JOB_VARIABLES = (
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
    wanted: Wanted, started_s: float, job: RunningJob, *, mark: str | None, teho: Sequence[str]
) -> tuple[Recording, RemoteRecorders | None]:
    """Create the directory of a run, write its description, and start the remote recorders.

    Args:
        wanted: what is to be recorded.
        started_s: monotonic time of the program's start.
        job: the job of this script.
        mark: identifies the program's processes, see `JobProcesses`. None: all processes of the job
            count, and this process is not their supervisor.
        teho: the command that starts this installation of Teho.

    Raises:
        OSError: it cannot be written.
    """
    run = describe(wanted, started_s)
    if job.others:
        step = step_of_job(job, run.id, job.host or job.hosts[0])
        run = msgspec.structs.replace(run, step=step)
    directory = create_run_directory(wanted.home, run.id, msgspec.json.encode(run)).absolute()
    plan = RecordingPlan(
        directory=str(directory),
        node=safe_name(job.host),
        period_s=wanted.period_s,
        started_s=started_s,
        started_at=run.started_at,
        supervisor_pid=None if mark is None else os.getpid(),
        node_count=len(job.hosts),
        job=job.number,
        job_variables=job.variables,
        mark=mark,
        spool=wanted.spool,
    )
    variables = {name: os.environ[name] for name in _JOB_VARIABLES if name in os.environ}
    remote = None
    if job.others:
        remote = start_remote_recorders(
            job, job.others, wanted.home, run, plan, teho=teho, variables=variables
        )
        plan = msgspec.structs.replace(plan, helper_pids=(remote.pid,) if remote.pid else ())
    return Recording(directory, run, plan if job.host else None, began=True), remote


def step_of_job(job: RunningJob, run_id: str, began_on: str) -> Step:
    """Return the step that represents a whole job, whose recording begins on a node."""
    return Step(
        key=f"{job.key}-{run_id}",
        started_by="Slurm",
        began_on=safe_name(began_on),
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
    variables: Mapping[str, str],
) -> RemoteRecorders:
    """Start recorders on some nodes of a job.

    Args:
        job: the job.
        hosts: the nodes.
        home: the directory of all recordings.
        run: the description of the run.
        plan: the plan; each node adds its own fields.
        teho: the command that starts this installation of Teho.
        variables: environment of the job's script that steps do not have.
    """
    orders = Orders(
        plan=plan, description=run, home=str(home.absolute()), environment=dict(variables)
    )
    words, environment = [*teho, "record-node"], {**os.environ, RECORDER: job.number}
    return RemoteRecorders(
        lambda some: step_in_job(job.number, some, words, environment),
        hosts,
        plan.directory,
        msgspec.to_builtins(orders),
    )
