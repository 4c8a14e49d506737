"""A step beside whatever runs in a Slurm job: on which nodes, and how it is started.

`srun --overlap` shares all that the job has with its other steps, which neither wait for it nor
notice it. Before Slurm 22.05 it shared cores alone: a step that waits for memory or GPUs could
then hold up the user's own, so that nothing is started there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence

import msgspec

from teho.errors import InputError
from teho.model.job import JobState
from teho.schedulers.command import accepted, run
from teho.schedulers.hostlist import expand_hosts
from teho.schedulers.slurm import values
from teho.schedulers.task import is_batch_script

__all__ = ["RunningJob", "job_of_script", "look_up", "step_beside"]

# `srun --version` says `slurm 22.05.8`, or `slurm-wlm 22.05.8` where Debian has built it.
_IF_IT_SHARES_ALL = """\
version=$(srun --version) || exit
case "$version" in
*" "1[0-9].*|*" "20.*|*" "21.*)
    echo "srun: error: $version shares cores alone with --overlap; Slurm 22.05 shares all"
    exit 1 ;;
esac
exec srun "$@"
"""
_COLUMN, _ROW = "\x1f", "\x1d"
# squeue(1), --format; free texts last: a name may hold a line break.
_QUESTION = _ROW + _COLUMN.join(("%A", "%T", "%U", "%u", "%N", "%r", "%j", "%o"))


class RunningJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that has nodes."""

    number: str
    """As `SLURM_JOB_ID` has it: of an array's task, a number of its own."""
    key: str
    """What no other job, nor an earlier run of this one, is called by."""
    hosts: tuple[str, ...]
    """Its nodes."""
    host: str = ""
    """Which of them this machine is; empty: none of them."""
    name: str = ""
    script: str = ""
    """Path of its script."""

    @property
    def others(self) -> tuple[str, ...]:
        """Its nodes without this one."""
        return tuple(host for host in self.hosts if host != self.host)


def job_of_script(environment: Mapping[str, str], machine: str) -> RunningJob | None:
    """Return the job whose script, or whose shell, this process is a part of; None: of none.

    Args:
        environment: of this process.
        machine: its name.

    Raises:
        InputError: the job's list of nodes does not parse.
    """
    get = environment.get
    listed = get("SLURM_JOB_NODELIST") or get("SLURM_NODELIST")
    if not listed or not is_batch_script(environment):
        return None
    hosts = expand_hosts(listed)
    short = (get("SLURMD_NODENAME") or machine).partition(".")[0]
    number = get("SLURM_JOB_ID") or get("SLURM_JOBID", "")
    restart = get("SLURM_RESTART_COUNT", "0")
    again = f"-r{restart}" if restart != "0" else ""
    return RunningJob(
        number=number,
        key=f"slurm-{get('SLURM_CLUSTER_NAME') or 'cluster'}-{number}.batch{again}",
        hosts=hosts,
        host=next((host for host in hosts if host.partition(".")[0] == short), ""),
        name=get("SLURM_JOB_NAME", ""),
    )


def step_beside(
    job: str, hosts: Sequence[str], command: Sequence[str], environment: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """Return what starts a command once on each of a job's nodes, and its environment.

    What it reads from its input, each of them reads; what they write comes out of it.

    Args:
        job: its number.
        hosts: which of its nodes.
        command: the command.
        environment: of this process. The job's own variables are left out of it: srun takes
            them for options, which would ask for another step.
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
        # One that fails, and a node that dies, leave the others alone.
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
    """Ask Slurm for a job that is to be recorded from outside, and for its state.

    Args:
        job: its number, or that of an array's task, such as `123_4`.

    Raises:
        InputError: there is no such job of this user's, or it stands for several.
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
            f"job {job} is {len(rows)} jobs", "one", "name a task of the array, such as 123_4"
        )
    number, state, uid, user, nodes, reason, name, script = rows[0].rstrip("\n").split(_COLUMN)
    if os.getuid() not in {0, int(uid)}:
        raise InputError(f"job {job} is {user}'s", "a job of yours", "`squeue --me` lists them")
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
        f"Slurm knows no job {job}", "the number of a job of yours", "`squeue --me` lists them"
    )
