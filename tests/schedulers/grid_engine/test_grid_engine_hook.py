"""The line of `teho always` for Grid Engine: which files it is for, and what it does to a job."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from stubs import silent_files
from support import wait_for
from teho.cli import always
from teho.errors import NoAnswerError
from teho.schedulers.command import Completed
from teho.schedulers.grid_engine.hook import grid_engine_hooks
from teho.schedulers.inventory import Ask

LOGIN = "qname all.q\nshell_start_mode posix_compliant\n"
UNIX = "qname all.q\nshell_start_mode unix_behavior\n"
SHELLS = "sh,bash,ksh,csh,tcsh"
SCRIPT = """\
echo "$# $1 $- $?"; cat; echo to stderr >&2; jobs
sh -c 'echo inner $((6 * 7))'; exit 3
"""
HANG_S = 10
"""How long a part of Teho hangs: a job that waits for it takes this time longer."""
LATE_S = 1.0
ROUNDS = 3
"""A busy machine can be slow once. A job that waits for Teho is slow in each round."""


def site(login_shells: str = SHELLS, **queues: str) -> Ask:
    """Return a Grid Engine with these queues."""
    answers = {
        "-sconf": f"shell_start_mode posix_compliant\nlogin_shells {login_shells}",
        "-sql": "\n".join(queues),
    }

    def ask(argv: Sequence[str], /, *, timeout_s: float, repeat: bool) -> Completed:
        assert not repeat
        text = answers.get(argv[1]) or queues[argv[2]]
        return Completed(tuple(argv), 0, f"{text}\n", "")

    return ask


def refusing(text: str) -> Ask:
    def ask(argv: Sequence[str], /, *, timeout_s: float, repeat: bool) -> Completed:
        return Completed(tuple(argv), 1, "", text)

    return ask


@pytest.mark.parametrize(
    ("present", "files"),
    [
        ((), [".profile"]),
        ((".profile",), [".profile"]),
        ((".bash_profile", ".profile"), [".bash_profile", ".profile"]),
        ((".bash_profile", ".bash_login"), [".bash_profile", ".profile"]),
        ((".bash_login",), [".bash_login", ".profile"]),
    ],
)
def test_bash_and_sh_read_different_files(
    tmp_path: Path, present: Sequence[str], files: list[str]
) -> None:
    for name in present:
        (tmp_path / name).touch()
    hooks = grid_engine_hooks("/x/start", tmp_path, site(**{"all.q": LOGIN}))
    assert [Path(hook.file).name for hook in hooks] == files
    assert {(hook.scheduler, hook.problem, hook.needs_new_shell) for hook in hooks} == {
        ("Grid Engine", "", False)
    }


@pytest.mark.parametrize(
    "queue",
    [
        UNIX,
        "shell_start_mode start_as_command\n",
        "qname a\n",
    ],
)
def test_without_login_shells_only_an_administrator_can(tmp_path: Path, queue: str) -> None:
    assert grid_engine_hooks("/x/start", tmp_path, site(a=queue)) == ()
    [hook] = grid_engine_hooks("/x/start", tmp_path, site(a=queue, b=LOGIN))
    assert hook.problem.startswith("in the queue a, jobs are not recorded: ")


@pytest.mark.parametrize("shells", ["NONE", "csh,tcsh"])
def test_no_login_shells_at_all(tmp_path: Path, shells: str) -> None:
    assert grid_engine_hooks("/x/start", tmp_path, site(shells, q=LOGIN)) == ()


def test_values_of_single_hosts_are_not_those_of_the_queue(tmp_path: Path) -> None:
    queue = LOGIN.replace("posix_compliant", "posix_compliant,[n1=unix_behavior]")
    assert grid_engine_hooks("/x/start", tmp_path, site(a=queue))[0].problem == ""
    queue = LOGIN.replace("posix_compliant", "unix_behavior,[@gpu=posix_compliant]")
    assert grid_engine_hooks("/x/start", tmp_path, site(a=queue)) == ()


def test_a_scheduler_that_does_not_answer(tmp_path: Path) -> None:
    unset = refusing("Please set the environment variable SGE_ROOT.\n")
    assert grid_engine_hooks("/x/start", tmp_path, unset) == ()
    [hook] = grid_engine_hooks("/x/start", tmp_path, refusing("denied: host is no submit host\n"))
    assert "did not report its queues: qconf says: denied" in hook.problem

    def hanging(argv: Sequence[str], /, *, timeout_s: float, repeat: bool) -> Completed:
        raise NoAnswerError("qconf did not answer within 5 s")

    [hook] = grid_engine_hooks("/x/start", tmp_path, hanging)
    assert "did not answer within 5 s" in hook.problem


class Job:
    """A script as Grid Engine starts it, with a recorder that only notes its start."""

    def __init__(self, folder: Path, number: str) -> None:
        self.folder = folder
        self.number = number
        self.took_s = 0.0
        """Time of the last run."""
        self.start = folder / "start"
        self.log = folder / "log"
        self.recorder = folder / "recorder"
        self.recorder.write_text(f'#!/bin/sh\necho "$TEHO_RECORDER $1" >>"{self.log}"\n')
        self.recorder.chmod(0o755)
        text = always._program(())
        command = text.partition("said=$(")[2].partition(" record-job")[0]
        self.start.write_text(text.replace(command, str(self.recorder)))
        self.start.chmod(0o755)
        self.profile = ""
        self.environment = {
            "HOME": str(folder), "PATH": os.environ["PATH"], "JOB_ID": number,
            "SGE_TASK_ID": "undefined", "SGE_JOB_SPOOL_DIR": str(folder),
        }  # fmt: skip

    @property
    def mark(self) -> Path:
        return Path(f"/tmp/teho-always-{self.number}.undefined")

    def run(
        self, shell: str = "/bin/bash", options: Sequence[str] = (), *, hook: bool = True
    ) -> tuple[int, str, str]:
        script, profile = self.folder / "script", self.folder / ".profile"
        script.write_text(SCRIPT)
        profile.write_text(self.profile)
        if hook:
            [line] = grid_engine_hooks(str(self.start), self.folder, site(q=LOGIN))[0].lines
            profile.write_text(f"{self.profile}{line}\n")
        began_s = time.monotonic()
        done = subprocess.run(
            [f"-{Path(shell).name}", *options, str(script), "a b"], executable=shell,
            env=self.environment, input="typed\n", capture_output=True, text=True, timeout=20,
            check=False,
        )  # fmt: skip
        self.took_s = time.monotonic() - began_s
        return done.returncode, done.stdout, done.stderr

    def starts(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@contextlib.contextmanager
def new_job(folder: Path) -> Iterator[Job]:
    folder.mkdir(exist_ok=True)
    one = Job(folder, f"{time.time_ns()}")
    try:
        yield one
    finally:
        one.mark.unlink(missing_ok=True)


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    with new_job(tmp_path) as one:
        yield one


@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/sh"])
@pytest.mark.parametrize("profile", ["", "false\n", "set -e\n", "set -u\nfalse\n", "set -f\n"])
@pytest.mark.parametrize("options", [(), ("-e",), ("-u",)])
def test_the_script_sees_no_difference(
    job: Job, shell: str, profile: str, options: Sequence[str]
) -> None:
    if profile == "set -u\nfalse\n" and options == ("-e",):
        profile = "false || :\n"  # the shell would end in both cases
    if profile == "false\n" and options == ("-e",):
        profile = "false && :\n"  # `$?` is 1, and the shell goes on
    job.profile = profile
    before = job.run(shell, options, hook=False)
    assert before[0] == 3, "the script ran"
    assert job.starts() == []
    assert job.run(shell, options) == before
    wait_for(job.starts)
    assert job.starts() == [f"{job.number}.undefined record-job"]


def _no_start(job: Job) -> None:
    job.start.unlink()


def _not_executable(job: Job) -> None:
    job.start.chmod(0o644)


def _other_architecture(job: Job) -> None:
    job.start.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(57))


def _hanging_start(job: Job) -> None:
    job.start.write_text(f"#!/bin/sh\nexec sleep {HANG_S}\n")


def _hanging_python(job: Job) -> None:
    job.recorder.write_text(f"#!/bin/sh\nexec sleep {HANG_S}\n")


def _no_python(job: Job) -> None:
    job.recorder.unlink()


def _crash(job: Job) -> None:
    job.recorder.write_text("#!/bin/sh\necho much >&2; echo printed; kill -SEGV $$\n")


def _no_setsid(job: Job) -> None:
    tools = job.folder / "bin"
    tools.mkdir()
    for name in ("bash", "cat", "sh"):
        (tools / name).symlink_to(f"/bin/{name}")
    job.environment["PATH"] = str(tools)


def _mark_of_another(job: Job) -> None:
    job.mark.write_text("")


@pytest.mark.parametrize(
    "plant",
    [_no_start, _not_executable, _other_architecture, _hanging_start, _hanging_python,
     _no_python, _crash, _no_setsid, _mark_of_another],
)  # fmt: skip
@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/sh"])
def test_no_breakage_reaches_the_job(
    tmp_path: Path, plant: Callable[[Job], None], shell: str
) -> None:
    check_that_the_job_is_as_without_teho(tmp_path, plant, shell)


@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/sh"])
def test_a_file_system_that_does_not_answer_reaches_no_job(tmp_path: Path, shell: str) -> None:
    silent = tmp_path / "silent"
    silent.mkdir()

    def plant(job: Job) -> None:
        job.start = silent / "start.bin"

    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(silent_files.mounted(silent))
        except OSError as error:
            pytest.skip(f"no FUSE here: {error}")
        check_that_the_job_is_as_without_teho(tmp_path, plant, shell)


def check_that_the_job_is_as_without_teho(
    folder: Path, plant: Callable[[Job], None], shell: str
) -> None:
    """Check the output, the exit code and the time of a job with something broken."""
    delays_s = []
    for number in range(ROUNDS):
        with new_job(folder / str(number)) as job:
            plant(job)
            found, took_s = job.run(shell), job.took_s
            assert found == job.run(shell, hook=False)
            delays_s.append(took_s - job.took_s)
        if delays_s[-1] < LATE_S:
            return
    raise AssertionError(f"the job was longer by {delays_s} s")


def test_a_recorder_that_fails_is_not_tried_again_by_the_same_job(job: Job) -> None:
    job.recorder.write_text(f'#!/bin/sh\necho x >>"{job.log}"; echo no disk >&2; exit 4\n')
    problem = job.folder / "problem"
    again = f'until [ -s "{problem}" ]; do sleep 0.1; done; bash --login -c "sleep 0.3"'
    job.run(options=("-c", again))
    assert problem.read_text().endswith(": no disk\n")
    assert job.starts() == ["x"]


@pytest.mark.parametrize(
    "changes",
    [
        {"SGE_JOB_SPOOL_DIR": ""}, {"TEHO_ALWAYS": "off"}, {"TEHO_RECORDER": "1"},
        {"JOB_ID": "$(touch x)"},
    ],
    ids=["login node", "switched off", "recorder", "not a number"],
)  # fmt: skip
def test_nothing_is_started(job: Job, changes: dict[str, str]) -> None:
    job.environment |= changes
    assert job.run() == job.run(hook=False)
    time.sleep(0.3)
    assert job.starts() == []
    assert not job.mark.is_symlink()


def test_an_interactive_session_is_no_batch_job(job: Job) -> None:
    job.run(options=("-i",))
    time.sleep(0.3)
    assert job.starts() == []


@pytest.mark.parametrize("shell", ["/bin/bash", "/bin/sh"])
def test_no_process_of_the_job_waits_for_the_recorder(job: Job, shell: str) -> None:
    """The recorder ends when all processes of the job have ended."""
    gate = job.folder / "gate"
    os.mkfifo(gate)
    job.recorder.write_text(f'#!/bin/sh\necho "$TEHO_RECORDER" >>"{job.log}"\ncat "{gate}"\n')
    job.run(shell)
    wait_for(job.starts)
    own = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if f"JOB_ID={job.number}\0".encode() in (path / "environ").read_bytes():
                own.add((path / "cmdline").read_bytes().split(b"\0")[1].decode())
        except OSError:
            continue
    gate.write_text("")
    assert str(job.recorder) in own
    # Beside it, the program that started it and its `cat`, if that has started.
    assert own <= {str(job.start), str(job.recorder), str(gate)}
