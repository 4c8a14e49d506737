"""Start an additional step in a running Slurm job, and find the job's nodes.

With `srun --overlap`, the step shares all resources of the job with the other steps, and they do
not wait for it. Before Slurm 22.05 it only shared cores. A step that waits for memory or GPUs could
then block the user's steps, so no step is started with these versions.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

from teho.errors import InputError
from teho.model.job import JobState, RunningJob
from teho.schedulers.command import accepted, run
from teho.schedulers.hostlist import expand_hosts
from teho.schedulers.slurm import values
from teho.schedulers.task import is_batch_script, step_key

__all__ = ["job_of_script", "look_up", "step_in_job"]

# `srun --version` prints `slurm 22.05.8`, or `slurm-wlm 22.05.8` on Debian.
_IF_IT_SHARES_ALL = """\
version=$(srun --version) || exit
case "$version" in
*" "1[0-9].*|*" "20.*|*" "21.*)
    echo "srun: error: with --overlap, $version shares only cores; Slurm 22.05 shares all resources"
    exit 1 ;;
esac
exec srun "$@"
"""
_COLUMN, _ROW = "\x1f", "\x1d"
# squeue(1), --format. Free texts are last: a name may contain a line break.
_QUESTION = _ROW + _COLUMN.join(("%A", "%T", "%U", "%u", "%N", "%r", "%j", "%o"))


def job_of_script(environment: Mapping[str, str], machine: str) -> RunningJob | None:
    """Return the job if this process belongs to its script or its shell; None: it does not.

    Args:
        environment: variables of this process.
        machine: name of this machine.

    Raises:
        InputError: the job's list of nodes cannot be read.
    """
    get = environment.get
    listed = get("SLURM_JOB_NODELIST") or get("SLURM_NODELIST")
    if not listed or not is_batch_script(environment):
        return None
    hosts = expand_hosts(listed)
    short = (get("SLURMD_NODENAME") or machine).partition(".")[0]
    return RunningJob(
        number=get("SLURM_JOB_ID") or get("SLURM_JOBID", ""),
        key=step_key(environment, "batch"),
        hosts=hosts,
        host=next((host for host in hosts if host.partition(".")[0] == short), ""),
        name=get("SLURM_JOB_NAME", ""),
    )


def step_in_job(
    job: str, hosts: Sequence[str], command: Sequence[str], environment: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """Return the argv that starts a command once on each of a job's nodes, and its environment.

    Each copy of the command gets the same standard input. The outputs are merged.

    Args:
        job: number of the job.
        hosts: the nodes of the job on which the command runs.
        command: the command.
        environment: variables of this process. The job's variables are removed, because srun
            takes them for options.
    """
    options = [
        f"--jobid={job}",
        "--overlap",
        f"--nodes={len(hosts)}",
        f"--ntasks={len(hosts)}",
        "--ntasks-per-node=1",
        f"--nodelist={','.join(hosts)}",
        "--cpu-bind=none",
        "--mpi=none",
        "--job-name=teho",
        # If one copy or one node fails, the others continue.
        "--wait=0",
        "--kill-on-bad-exit=0",
        "--no-kill",
    ]
    kept = {
        name: value
        for name, value in environment.items()
        if name == "SLURM_CONF" or not name.startswith(("SLURM_", "SLURMD_", "SRUN_"))
    }
    return ["sh", "-c", _IF_IT_SHARES_ALL, "srun", *options, *command], kept


def look_up(job: str) -> tuple[RunningJob, JobState]:
    """Ask Slurm for a job that will be recorded from outside, and for its state.

    Args:
        job: number of the job, or of an array's task, such as `123_4`.

    Raises:
        InputError: the user does not have this job, or it has several tasks.
        SchedulerError: Slurm cannot be asked.
    """
    question = ("squeue", "--noheader", "--states=all", f"--jobs={job}", f"--format={_QUESTION}")
    answer = run(question, repeat=True)
    if answer.exit_code != 0 and re.search("Invalid job id|Invalid job array", answer.stderr):
        raise _unknown(job)
    rows = accepted(answer).stdout.split(_ROW)[1:]
    if not rows:
        raise _unknown(job)
    if len(rows) > 1:
        raise InputError(
            f"job {job} has {len(rows)} tasks",
            "one task",
            "name a task of the array, such as 123_4",
        )
    number, state, uid, user, nodes, reason, name, script = rows[0].rstrip("\n").split(_COLUMN)
    if os.getuid() not in {0, int(uid)}:
        raise InputError(
            f"job {job} belongs to {user}", "one of your jobs", "`squeue --me` lists your jobs"
        )
    found = RunningJob(
        number=number,
        key=f"slurm-{number}-attached",
        hosts=expand_hosts(nodes) if nodes else (),
        name=name,
        script=script,
    )
    return found, values.state(state, reason)


def _unknown(job: str) -> InputError:
    return InputError(
        f"Slurm does not know job {job}",
        "the number of one of your jobs",
        "`squeue --me` lists your jobs",
    )
