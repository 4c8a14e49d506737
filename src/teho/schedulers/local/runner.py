"""The scheduler behind `local`: a detached process for each job, and its files.

    HOME/local/NUMBER/submission.json   the submission; never changes
    HOME/local/NUMBER/state.json        only written by the runner, which replaces it as a whole
    HOME/local/NUMBER/cancel[.TASK]     a request to end the job, or one task

The runner has its own session and starts the script in another one. So both continue when the
terminal closes, and the end of a job ends all its processes. Times are UTC, and durations come from
the monotonic clock.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from teho.model.job import Job, JobState, Submission
from teho.schedulers.array import tasks_of
from teho.schedulers.local.backend import log_path
from teho.schedulers.local.scheduler import LOCAL_JOB
from teho.store.layout import replace_file

__all__ = ["main"]

_GRACE_S = 10.0
"""Time between SIGTERM and SIGKILL."""
_LONGEST_PAUSE_S = 3600.0
_POLL_S = 0.02
_MIB = 1024**2
_SIGNALS = frozenset({signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})


class _Process(msgspec.Struct, frozen=True):
    """A process. The stamp of its start differs if a later process has the same pid."""

    pid: int
    stamp: str

    @property
    def alive(self) -> bool:
        return bool(self.stamp) and _stamp(self.pid) == self.stamp


class _State(msgspec.Struct, kw_only=True):
    """The content of `state.json`."""

    host: str
    runner: _Process
    program: _Process | None = None
    started_s: float = 0.0
    """Start of the running task, on the machine's monotonic clock."""
    jobs: list[Job]


def main(arguments: Sequence[str]) -> int:
    """Do `HOME submit JSON`, `HOME show all`, `HOME show NUMBER…` or `HOME cancel ID…`."""
    home, command, *words = arguments
    try:
        if command == "submit":
            _write(_submit(Path(home), msgspec.json.decode(words[0], type=Submission)))
        elif command == "show":
            _write(msgspec.json.encode(list(_show(Path(home), words))).decode())
        else:
            _cancel(Path(home), words)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _submit(home: Path, submission: Submission) -> str:
    """Start a runner and return the job's number once it has written its first state."""
    if not Path(submission.script).is_file():
        raise ValueError(f"script {submission.script} does not exist")
    tasks = tasks_of(submission.array)
    os.chdir(submission.directory)
    folder = _new_folder(home)
    jobs = [_job(folder.name, task, submission) for task in tasks]
    (folder / "submission.json").write_bytes(msgspec.json.encode(submission))
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(reading)
        os.setsid()
        if os.fork() == 0:
            _run(folder, submission, jobs, writing)
        os._exit(0)
    os.close(writing)
    os.wait()
    with os.fdopen(reading, "rb") as pipe:
        if pipe.read() != b"started":
            raise ValueError(f"the runner did not start; {folder}/runner.log may have the reason")
    return folder.name


def _new_folder(home: Path) -> Path:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    number = max((int(folder.name) for folder in _folders(home)), default=0)
    while True:
        number += 1
        with contextlib.suppress(FileExistsError):
            (home / str(number)).mkdir(mode=0o700)
            return home / str(number)


def _folders(home: Path) -> list[Path]:
    with contextlib.suppress(FileNotFoundError):
        return sorted(
            (path for path in home.iterdir() if path.name.isdigit()), key=lambda at: int(at.name)
        )
    return []


def _job(number: str, task: str | None, submission: Submission) -> Job:
    job = Job(
        id=number if task is None else f"{number}_{task}",
        number=number,
        task=task,
        name=submission.name,
        state=JobState.PENDING,
        state_as_written="waiting",
        node_list=os.uname().nodename,
        nodes=1,
        submitted_at=_now(),
        comment=submission.mark,
        script=submission.script,
    )
    if submission.option is None:
        return job
    option = submission.option
    return msgspec.structs.replace(
        job,
        cores=option.nodes * option.tasks_per_node * option.cpus_per_task,
        gpus=option.nodes * option.gpus_per_node,
        memory_bytes=option.memory_mib * _MIB if option.memory_mib else None,
        time_limit_s=option.time_s,
    )


class _Runner:
    """Runs one job."""

    def __init__(self, folder: Path, submission: Submission, jobs: list[Job]) -> None:
        self.folder = folder
        self.submission = submission
        runner = _Process(os.getpid(), _stamp(os.getpid()))
        self.state = _State(host=os.uname().nodename, runner=runner, jobs=jobs)
        self.keep()

    def keep(self) -> None:
        """Write the state."""
        replace_file(self.folder / "state.json", msgspec.json.encode(self.state))

    def change(self, index: int, **facts: object) -> Job:
        """Change one task, and write the state."""
        job = msgspec.structs.replace(self.state.jobs[index], **facts)
        self.state.jobs[index] = job
        self.keep()
        return job

    def cancelled(self, job: Job) -> bool:
        """Return whether this task, or the whole job, is cancelled."""
        return (self.folder / "cancel").exists() or (
            job.task is not None and (self.folder / f"cancel.{job.task}").exists()
        )

    def run_all(self) -> None:
        """Run the tasks one after another."""
        for index, job in enumerate(self.state.jobs):
            if self.cancelled(job):
                self._end_task(index, JobState.CANCELLED)
            else:
                self.run_task(index)

    def run_task(self, index: int) -> None:
        """Run the script to its end, or to its time limit."""
        job = self.change(
            index, state=JobState.RUNNING, state_as_written="running", started_at=_now()
        )
        self.state.started_s = time.monotonic()
        pid = self.spawn(job)
        self.state.program = _Process(pid, _stamp(pid))
        self.keep()
        reason = self.watch(pid, job)
        # Kill the group before the process is reaped: until then, its number is not used again.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        _, status, used = os.wait4(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        self.state.program = None
        self._end_task(
            index,
            reason or (JobState.COMPLETED if code == 0 else JobState.FAILED),
            elapsed_s=time.monotonic() - self.state.started_s,
            exit_code=code if code >= 0 and reason is None else None,
            signal=-code if code < 0 else None,
            memory_peak_bytes=used.ru_maxrss * 1024,
            cpu_s=used.ru_utime + used.ru_stime,
        )

    def _end_task(self, index: int, state: JobState, **facts: object) -> None:
        written = state.value.replace("_", " ")
        self.change(index, state=state, state_as_written=written, ended_at=_now(), **facts)

    def spawn(self, job: Job) -> int:
        """Start the script. Its output goes to the log, and its input is empty."""
        log = log_path(self.submission, job)
        log.parent.mkdir(parents=True, exist_ok=True)
        # With this variable, a recording of the program belongs to this job.
        environment = dict(os.environ) | {LOCAL_JOB: job.id}
        if job.task is not None:
            # Programs for Slurm's arrays read their index from this variable.
            environment["SLURM_ARRAY_TASK_ID"] = job.task
        return os.posix_spawn(
            "/bin/bash",
            ["bash", self.submission.script],
            environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
            setsigmask=(),
            setsigdef=_SIGNALS,
        )

    def watch(self, pid: int, job: Job) -> JobState | None:
        """Wait for the program's end, and return why it was ended; None: it ended by itself."""
        reason = None
        limit_s = math.inf if job.time_limit_s is None else job.time_limit_s
        until_s = self.state.started_s + limit_s
        while not _has_ended(pid):
            self.pause(until_s - time.monotonic())
            if time.monotonic() >= until_s:
                number = signal.SIGKILL if reason else signal.SIGTERM
                reason = reason or JobState.TIMED_OUT
            elif reason is None and self.cancelled(job):
                number, reason = signal.SIGTERM, JobState.CANCELLED
            else:
                continue
            until_s = time.monotonic() + _GRACE_S
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, number)
        return reason

    def pause(self, left_s: float) -> None:
        """Wait at most `left_s` for a signal. Without a cancel file, it cancels the whole job."""
        received = signal.sigtimedwait(_SIGNALS, min(max(left_s, 0.0), _LONGEST_PAUSE_S))
        if (
            received is not None
            and received.si_signo != signal.SIGCHLD
            and not any(self.folder.glob("cancel*"))
        ):
            (self.folder / "cancel").touch()


def _run(folder: Path, submission: Submission, jobs: list[Job], started: int) -> None:
    """Run the job in this process, and exit."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    errors = os.open(folder / "runner.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for target, source in ((0, nowhere), (1, nowhere), (2, errors)):
        os.dup2(source, target)
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        runner = _Runner(folder, submission, jobs)
        os.write(started, b"started")
        os.close(started)
        runner.run_all()
    except BaseException as error:  # noqa: BLE001 - each error must be in the log
        os.write(2, f"{error!r}\n".encode())
        os._exit(1)
    os._exit(0)


def _has_ended(pid: int) -> bool:
    """Return whether a child has ended, without reaping it."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _show(home: Path, numbers: Sequence[str]) -> Iterator[Job]:
    everything = list(numbers) == ["all"]
    for folder in _folders(home):
        state = _read(folder) if everything or folder.name in numbers else None
        if state is None:
            continue
        lost = state.host == os.uname().nodename and not state.runner.alive
        if lost:  # It may have written its last state after this one was read.
            state = _read(folder) or state
        yield from (_as_seen(job, state, lost=lost) for job in state.jobs)


def _read(folder: Path) -> _State | None:
    """Return a job's state; None: it has none yet."""
    try:
        return msgspec.json.decode((folder / "state.json").read_bytes(), type=_State)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def _as_seen(job: Job, state: _State, *, lost: bool) -> Job:
    if job.state.ended:
        return job
    if lost:
        return msgspec.structs.replace(
            job,
            state=JobState.NODE_FAILED,
            state_as_written="lost",
            reason="the process that ran the job was killed, or the machine was restarted",
        )
    if job.state is JobState.RUNNING and state.host == os.uname().nodename:
        return msgspec.structs.replace(job, elapsed_s=time.monotonic() - state.started_s)
    return job


def _cancel(home: Path, ids: Sequence[str]) -> None:
    for written in ids:
        number, _, task = written.partition("_")
        state = _read(home / number) if number.isdigit() else None
        if state is None:
            raise ValueError(f"job {written} does not exist")
        if all(job.state.ended for job in state.jobs if task in {"", job.task}):
            continue
        if state.host != os.uname().nodename:
            raise ValueError(f"job {number} runs on {state.host}; cancel it there")
        (home / number / (f"cancel.{task}" if task else "cancel")).touch()
        if state.runner.alive:
            os.kill(state.runner.pid, signal.SIGTERM)
        elif state.program is not None:
            _end(state.program)


def _end(program: _Process) -> None:
    """End a program whose runner has ended, as the runner does it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if not program.alive:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, number)
        until_s = time.monotonic() + _GRACE_S
        while program.alive and time.monotonic() < until_s:
            time.sleep(_POLL_S)


def _stamp(pid: int) -> str:
    """Return the start of a process, in the kernel's ticks; empty if it has ended.

    A process that has ended but was not reaped has state Z or X (proc_pid_stat(5), fields 3 and
    22).
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if fields[0] in {"Z", "X"} else fields[19]
    except (OSError, IndexError):
        return ""


def _now() -> datetime:
    return datetime.now(timezone.utc)
