from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path

import msgspec
import pytest

from teho.errors import InputError, RefusedError
from teho.model.job import Job, JobState, Submission
from teho.model.plan import Option
from teho.model.request import Request
from teho.schedulers import jobs
from teho.schedulers.command import Completed
from teho.schedulers.local import runner as local_runner
from teho.schedulers.local.backend import Local
from teho.schedulers.registry import backend_for


class Machine:
    """Local jobs of a test; whatever is left of them is ended."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.backend = Local(directory / "home")
        self.started: list[str] = []

    def submission(self, script: str, **changes: object) -> Submission:
        path = self.directory / f"{len(self.started)} job.sh"
        path.write_text(script)
        facts: dict[str, object] = {
            "mark": jobs.new_mark(),
            "scheduler": "local",
            "cluster": "here",
            "name": "train",
            "submitted_at": datetime.now(timezone.utc),
            "directory": str(self.directory),
            "script": str(path),
        }
        return Submission(**{**facts, **changes})

    def submit(self, script: str, **changes: object) -> Submission:
        found = jobs.submit(self.backend, self.submission(script, **changes), lambda _: None)
        assert found.job
        self.started.append(found.job)
        return found

    def jobs(self, of: Submission) -> tuple[Job, ...]:
        assert of.job
        return jobs.states(self.backend, [of.job])[of.job]

    def until(self, of: Submission, met: Callable[[tuple[Job, ...]], bool]) -> tuple[Job, ...]:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            found = self.jobs(of)
            if met(found):
                return found
            time.sleep(0.05)
        raise AssertionError(found)

    def ended(self, of: Submission) -> tuple[Job, ...]:
        return self.until(of, lambda found: all(job.state.ended for job in found))

    def log(self, of: Submission, job: Job) -> str:
        return self.backend.log_path(of, job).read_text()

    def waits_for(self, name: str) -> str:
        end = time.monotonic() + 60
        while not (self.directory / name).exists() and time.monotonic() < end:
            time.sleep(0.02)
        return (self.directory / name).read_text()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    directory = tmp_path / "a machine"
    directory.mkdir()
    found = Machine(directory)
    yield found
    with contextlib.suppress(RefusedError):
        jobs.cancel(found.backend, found.started)


def option(time_s: float) -> Option:
    return Option(
        cluster="here",
        scheduler="local",
        partition="",
        node_kind="",
        nodes=1,
        gpus_per_node=2,
        gpu_type="",
        tasks_per_node=2,
        cpus_per_task=3,
        memory_mib=4 * 1024,
        time_s=time_s,
        account="",
        request=Request(),
    )


def alive(pid: int) -> bool:
    """Tell whether a process goes on; one that was killed may take a moment to go."""
    end = time.monotonic() + 30
    while _there(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return _there(pid)


def _there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_job_runs_to_its_end(machine: Machine):
    of = machine.submit("echo hello; echo error >&2; pwd; cat; exit 3", option=option(60))
    (job,) = machine.ended(of)
    assert (job.state, job.exit_code, job.signal) == (JobState.FAILED, 3, None)
    assert (job.gpus, job.cores, job.memory_bytes, job.time_limit_s) == (2, 6, 4 << 30, 60)
    assert machine.log(of, job) == f"hello\nerror\n{machine.directory}\n"
    assert job.elapsed_s is not None
    assert job.elapsed_s > 0
    assert job.cpu_s is not None
    assert (job.memory_peak_bytes or 0) > 1 << 20
    assert job.submitted_at <= job.started_at <= job.ended_at
    assert jobs.accounting(machine.backend, of.job) == (job,)
    assert jobs.find(machine.backend, of) == of


def test_a_job_outlives_the_session_that_made_it(machine: Machine):
    of = machine.submit("ps -o sid= -p $$ > sid.new; mv sid.new sid")
    assert int(machine.waits_for("sid")) != os.getsid(0)
    assert machine.ended(of)[0].state is JobState.COMPLETED


def test_a_program_that_dies_by_a_signal(machine: Machine):
    (job,) = machine.ended(machine.submit("kill -USR1 $$"))
    assert (job.state, job.exit_code, job.signal) == (JobState.FAILED, None, signal.SIGUSR1)


def test_a_job_is_ended_with_everything_that_it_started(machine: Machine):
    of = machine.submit("sleep 600 & echo $! > child.new; mv child.new child; wait")
    child = int(machine.waits_for("child"))
    assert machine.jobs(of)[0].state is JobState.RUNNING
    assert machine.jobs(of)[0].elapsed_s is not None
    jobs.cancel(machine.backend, [of.job])
    (job,) = machine.ended(of)
    assert (job.state, job.exit_code) == (JobState.CANCELLED, None)
    assert not alive(child)
    jobs.cancel(machine.backend, [of.job])  # it has ended: no error


def test_what_a_finished_job_leaves_behind_is_ended(machine: Machine):
    of = machine.submit("sleep 600 & echo $! > child")
    machine.ended(of)
    assert not alive(int((machine.directory / "child").read_text()))


def test_the_time_limit_is_enforced(machine: Machine):
    of = machine.submit("trap 'echo told; exit 0' TERM; sleep 600 & wait", option=option(1.5))
    (job,) = machine.ended(of)
    assert (job.state, job.exit_code) == (JobState.TIMED_OUT, None)
    assert machine.log(of, job) == "told\n"


def test_a_program_that_does_not_listen_is_killed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
):
    # The runner is a process of its own: its patience is changed where it starts.
    start = "import teho.schedulers.local.runner as runner; runner._GRACE_S = 0.3; "
    monkeypatch.setattr(
        "teho.schedulers.local.backend._START",
        "import sys; sys.path[:] = sys.argv.pop(1).split(':'); "
        f"{start} sys.exit(runner.main(sys.argv[1:]))",
    )
    of = machine.submit("trap '' TERM; while :; do sleep 0.1; done", option=option(1.5))
    (job,) = machine.ended(of)
    assert (job.state, job.signal) == (JobState.TIMED_OUT, signal.SIGKILL)


def test_tasks_run_one_after_another(machine: Machine):
    of = machine.submit(
        'echo "task $SLURM_ARRAY_TASK_ID"; mkdir lock || exit 9; sleep 0.1; rmdir lock',
        array="1-5:2%2",
        log="%A.%a.log",
    )
    found = machine.ended(of)
    assert [(job.id, job.task, job.exit_code) for job in found] == [
        (f"{of.job}_{task}", task, 0) for task in ("1", "3", "5")
    ]
    assert (machine.directory / f"{of.job}.3.log").read_text() == "task 3\n"


def test_one_task_can_be_cancelled(machine: Machine):
    of = machine.submit("[ $SLURM_ARRAY_TASK_ID = 3 ] || sleep 600", array="1-3")
    machine.until(of, lambda found: found[0].state is JobState.RUNNING)
    jobs.cancel(machine.backend, [f"{of.job}_2", f"{of.job}_1"])
    assert [job.state for job in machine.ended(of)] == [
        JobState.CANCELLED,
        JobState.CANCELLED,
        JobState.COMPLETED,
    ]


def test_a_killed_runner_is_reported_and_its_program_can_still_be_ended(machine: Machine):
    of = machine.submit("echo $$ > pid.new; mv pid.new pid; sleep 600")
    program = int(machine.waits_for("pid"))
    folder = machine.directory / "home" / "local" / of.job
    machine.until(of, lambda _: b'"program":{' in (folder / "state.json").read_bytes())
    runner = msgspec.json.decode((folder / "state.json").read_bytes())["runner"]["pid"]
    os.kill(runner, signal.SIGKILL)
    (job,) = machine.ended(of)
    assert (job.state, job.state_as_written) == (JobState.NODE_FAILED, "lost")
    assert _there(program)
    jobs.cancel(machine.backend, [of.job])
    assert not alive(program)


def test_a_job_that_ends_while_it_is_read_is_not_lost(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Its runner writes the last state and leaves, between a look at the one and the other."""
    of = machine.submit("while [ ! -e end ]; do sleep 0.02; done")
    machine.until(of, lambda found: found[0].state is JobState.RUNNING)
    alive_by_now = local_runner._Process.alive.fget

    def alive_after_the_end(process: local_runner._Process) -> bool:
        (machine.directory / "end").touch()
        while alive_by_now(process):
            time.sleep(0.01)
        return False

    monkeypatch.setattr(local_runner._Process, "alive", property(alive_after_the_end))
    assert local_runner.main([str(machine.directory / "home" / "local"), "show", of.job]) == 0
    (job,) = msgspec.json.decode(capsys.readouterr().out, type=list[Job])
    assert job.state is JobState.COMPLETED


def test_a_runner_whose_end_was_not_noted_has_ended(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
):
    """As in a container whose first process waits for no child."""
    of = machine.submit(
        "trap '' TERM; echo $$ > pid.new; mv pid.new pid; while :; do sleep 1; done"
    )
    program = int(machine.waits_for("pid"))
    path = machine.directory / "home" / "local" / of.job / "state.json"
    machine.until(of, lambda _: b'"program":{' in path.read_bytes())
    os.kill(msgspec.json.decode(path.read_bytes())["runner"]["pid"], signal.SIGKILL)
    monkeypatch.setattr(local_runner, "_GRACE_S", 0.2)
    with subprocess.Popen(["true"]) as zombie:
        assert os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
        fields = Path(f"/proc/{zombie.pid}/stat").read_text().rpartition(")")[2].split()
        state = msgspec.json.decode(path.read_bytes())
        state["runner"] = {"pid": zombie.pid, "stamp": fields[19]}
        path.write_bytes(msgspec.json.encode(state))
        assert machine.jobs(of)[0].state is JobState.NODE_FAILED
        # It does not listen either.
        home = str(machine.directory / "home" / "local")
        assert local_runner.main([home, "cancel", of.job]) == 0
    assert not alive(program)


def test_a_process_that_only_has_the_number_is_not_ended(machine: Machine):
    of = machine.submit("sleep 600")
    machine.until(of, lambda found: found[0].state is JobState.RUNNING)
    jobs.cancel(machine.backend, [of.job])
    machine.ended(of)
    # As after a restart: the job was running, and its numbers are somebody else's now.
    path = machine.directory / "home" / "local" / of.job / "state.json"
    state = msgspec.json.decode(path.read_bytes())
    state["jobs"][0]["state"] = "running"
    state["runner"] = state["program"] = {"pid": os.getpid(), "stamp": "1"}
    path.write_bytes(msgspec.json.encode(state))
    before = signal.signal(signal.SIGTERM, lambda *_: pytest.fail("killed a stranger"))
    try:
        jobs.cancel(machine.backend, [of.job])
    finally:
        signal.signal(signal.SIGTERM, before)
    assert machine.jobs(of)[0].state is JobState.NODE_FAILED


def test_files_of_the_current_directory_are_not_imported(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
):
    (machine.directory / "msgspec.py").write_text("raise SystemExit('shadow')")
    monkeypatch.chdir(machine.directory)
    assert machine.ended(machine.submit("true"))[0].state is JobState.COMPLETED


def test_mistakes_are_reported(machine: Machine):
    of = machine.submission("true")
    with pytest.raises(RefusedError, match="script /nowhere does not exist"):
        jobs.submit(machine.backend, msgspec.structs.replace(of, script="/nowhere"), lambda _: None)
    with pytest.raises(RefusedError, match="not a list of indices"):
        jobs.submit(machine.backend, msgspec.structs.replace(of, array="1-"), lambda _: None)
    with pytest.raises(RefusedError, match="job 99 does not exist"):
        jobs.cancel(machine.backend, ["99"])
    assert jobs.states(machine.backend, ["99"])["99"][0].state is JobState.UNKNOWN


def test_answers_of_the_runner(tmp_path: Path):
    backend = Local(tmp_path)
    assert backend.read_submitted(Completed(("x",), 0, "12\n", "")) == "12"
    assert backend.read_submitted(Completed(("x",), 0, "", "")) is None
    assert backend.estimate(Path("x")) is None
    assert backend.read_estimate(Completed(("x",), 0, "", "")) is None
    with pytest.raises(ValueError, match="JSON"):
        backend.queue(["1"])[0].read(Completed(("x",), 0, "nonsense", ""))


def test_backends_have_names(tmp_path: Path):
    for name in ("slurm", "grid_engine", "local"):
        assert backend_for(name, tmp_path).name == name
    with pytest.raises(InputError, match=r"'pbs'.*slurm or grid_engine or local"):
        backend_for("pbs", tmp_path)
