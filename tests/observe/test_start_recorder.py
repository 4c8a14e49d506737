"""A job with the lines of `teho always` behaves as without them, whatever is broken."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stubs import silent_files
from support import wait_for
from teho.cli import always
from teho.schedulers.slurm.hook import slurm_hook

SCRIPT = """\
echo "$# $1 $- $?"; false | true; echo "${PIPESTATUS[*]}"
bash -c 'echo inner $((6 * 7))'; cat; echo to stderr >&2; jobs; exit 3
"""
HANG_S = 10
"""How long a part of Teho hangs: a job that waits for it takes this time longer."""
LATE_S = 1.0
ROUNDS = 3
"""A busy machine can be slow once. A job that waits for Teho is slow in each round."""


class Job:
    """A batch script as Slurm starts it, with a recorder that only notes its start."""

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
        self.write_start()
        self.options: tuple[str, ...] = ()
        self.script = SCRIPT
        self.environment = {
            "PATH": os.environ["PATH"],
            "SLURM_JOB_ID": number,
            "SLURM_JOB_NODELIST": "n1",
            "SLURMD_NODENAME": "n1",
            "SLURM_TASK_PID": str(os.getpid()),
        }

    @property
    def mark(self) -> Path:
        return Path(f"/tmp/teho-always-{self.number}")

    def write_start(self) -> None:
        text = always._program(())
        command = text.partition("said=$(")[2].partition(" record-job")[0]
        self.start.write_text(text.replace(command, str(self.recorder)))
        self.start.chmod(0o755)

    def run(self, hook: bool) -> tuple[int, str, str]:
        script = self.folder / "script.sh"
        script.write_text(self.script)
        environment = dict(self.environment)
        if hook:
            lines = slurm_hook(str(self.start), self.folder, {"SHELL": "/bin/bash"}).lines
            shell = [*lines, 'printf %s "$BASH_ENV"']
            environment["BASH_ENV"] = subprocess.run(
                ["bash", "-c", "\n".join(shell)],
                env=environment, capture_output=True, text=True, check=True,
            ).stdout.rpartition("\n")[2]  # fmt: skip
        began_s = time.monotonic()
        done = subprocess.run(
            ["bash", *self.options, str(script), "a b"],
            env=environment, input="typed\n", capture_output=True, text=True, timeout=20,
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


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system that does not answer; return its folder."""
    folder = tmp_path / "silent"
    folder.mkdir()
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(silent_files.mounted(folder))
        except OSError as error:
            pytest.skip(f"no FUSE here: {error}")
        yield folder


def test_the_recorder_starts_once(job: Job) -> None:
    gate = job.folder / "gate"
    os.mkfifo(gate)
    job.recorder.write_text(f'#!/bin/sh\necho "$TEHO_RECORDER $1" >>"{job.log}"\ncat "{gate}"\n')
    assert job.run(hook=True) == job.run(hook=False)
    wait_for(job.starts)
    assert job.run(hook=True) == job.run(hook=False)
    waiting = int(job.mark.readlink().name)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2):
        os.kill(waiting, number)
    assert job.mark.exists()
    gate.write_text("")  # the recorder ends
    wait_for(lambda: not job.mark.is_symlink())
    assert job.starts() == [f"{job.number} record-job"]


@pytest.mark.parametrize("option", ["-u", "-e", "-f", "-x", "--noprofile", "-l", "--posix", "-p"])
def test_options_of_bash_change_nothing(job: Job, option: str) -> None:
    job.options = (option,)
    (code, printed, said), before = job.run(hook=True), job.run(hook=False)
    # With -x, bash also prints what it expands.
    said = "".join(line for line in said.splitlines(keepends=True) if "teho-always" not in line)
    assert (code, printed, said if option != "-x" else before[2]) == before


def _no_start(job: Job) -> None:
    job.start.unlink()


def _not_executable(job: Job) -> None:
    job.start.chmod(0o644)


def _other_architecture(job: Job) -> None:
    job.start.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(57))


def _no_interpreter(job: Job) -> None:
    job.start.write_text("#!/nowhere/sh\n")


def _syntax_error(job: Job) -> None:
    job.start.write_text("#!/bin/sh\nif then ( echo $(\n")


def _no_python(job: Job) -> None:
    job.recorder.unlink()


def _broken_python(job: Job) -> None:
    job.recorder.write_text("#!/bin/sh\necho much >&2; echo printed; kill -SEGV $$\n")


def _no_file(job: Job) -> None:
    job.start.unlink()
    os.mkfifo(job.start, 0o755)


def _hanging_start(job: Job) -> None:
    job.start.write_text(f"#!/bin/sh\nexec sleep {HANG_S}\n")


def _hanging_python(job: Job) -> None:
    job.recorder.write_text(f"#!/bin/sh\nexec sleep {HANG_S}\n")


def _no_setsid(job: Job) -> None:
    tools = job.folder / "bin"
    tools.mkdir()
    for name in ("bash", "cat", "sh"):
        (tools / name).symlink_to(f"/bin/{name}")
    job.environment["PATH"] = str(tools)


def _mark_of_another(job: Job) -> None:
    job.mark.write_text("")


def _name_of_another_file(job: Job) -> None:
    job.environment["BASH_ENV"] = "/nowhere/$HOME/init"


@pytest.mark.parametrize(
    "plant",
    [
        _no_start, _not_executable, _other_architecture, _no_interpreter, _syntax_error, _no_python,
        _broken_python, _no_file, _hanging_start, _hanging_python, _no_setsid, _mark_of_another,
        _name_of_another_file,
    ],
)  # fmt: skip
def test_no_breakage_reaches_the_job(tmp_path: Path, plant: Callable[[Job], None]) -> None:
    check_that_the_job_is_as_without_teho(tmp_path, plant)


@pytest.mark.parametrize("part", ["program", "recordings"])
def test_a_file_system_that_does_not_answer_reaches_no_job(
    tmp_path: Path, silent: Path, part: str
) -> None:
    waiting = silent / "start.bin" if part == "program" else silent / "home.silent"

    def plant(job: Job) -> None:
        if part == "program":
            job.start = waiting
        else:
            job.recorder.write_text(f'#!/bin/sh\necho x >>"{job.log}"\nexec cat "{waiting}"\n')

    check_that_the_job_is_as_without_teho(tmp_path, plant)
    wait_for(lambda: is_in_a_command_line(str(waiting)))


def is_in_a_command_line(word: str) -> bool:
    """Return whether a process waits in the start of a program, or has this argument."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if word in path.read_bytes().decode(errors="replace"):
                return True
    return False


def check_that_the_job_is_as_without_teho(folder: Path, plant: Callable[[Job], None]) -> None:
    """Check the output, the exit code and the time of a job with something broken."""
    delays_s = []
    for number in range(ROUNDS):
        with new_job(folder / str(number)) as job:
            plant(job)
            found, took_s = job.run(hook=True), job.took_s
            assert found == job.run(hook=False)
            delays_s.append(took_s - job.took_s)
        if delays_s[-1] < LATE_S:
            return
    raise AssertionError(f"the job was longer by {delays_s} s")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make namespaces here")
def test_a_container_inside_the_job(job: Job) -> None:
    """The files of Teho are not in the container, and the link of the job leads nowhere there."""
    hidden = job.folder / "hidden"
    hidden.mkdir()
    container = job.folder / "container"
    container.write_text(
        "#!/bin/sh\n"
        f'exec unshare --mount --pid --fork --mount-proc sh -c \'mount -t tmpfs none "{hidden}"; '
        'exec bash -c "echo inside; exit 5"\'\n'
    )
    container.chmod(0o755)
    start = hidden / "start"
    start.write_bytes(job.start.read_bytes())
    start.chmod(0o755)
    job.start = start
    job.script = f"{container}; echo $?; sleep 0.2; {container}; exit 3\n"
    with_hook, without = job.run(hook=True), job.run(hook=False)
    assert with_hook == without == (3, "inside\n5\ninside\n", "")
    wait_for(job.starts)
    assert len(job.starts()) == 1


def test_a_recorder_that_fails_is_noted_and_not_tried_again(job: Job) -> None:
    job.recorder.write_text(f'#!/bin/sh\necho x >>"{job.log}"; echo no disk >&2; exit 4\n')
    job.run(hook=True)
    problem = job.folder / "problem"
    wait_for(lambda: problem.exists() and problem.read_text().endswith(": no disk\n"))
    assert f"job {job.number} on" in problem.read_text()
    job.run(hook=True)
    assert job.starts() == ["x"]


def test_the_file_of_lmod_is_still_read(job: Job) -> None:
    (job.folder / "init").write_text("export OF_LMOD=1; echo read\n")
    job.environment |= {"BASH_ENV": "$PLACE/init", "PLACE": str(job.folder)}
    assert job.run(hook=True) == job.run(hook=False)
    assert job.run(hook=True)[1].count("read") == 2
    wait_for(job.starts)


@pytest.mark.parametrize(
    "changes",
    [
        {"SLURMD_NODENAME": ""}, {"SLURM_STEP_ID": "0"}, {"SLURM_STEP_ID": "429"},
        {"TEHO_ALWAYS": "off"},
        {"TEHO_RECORDER": "1"}, {"SLURM_JOB_ID": "$(touch x)"},
    ],
    ids=["login node", "step", "another step", "switched off", "recorder", "not a number"],
)  # fmt: skip
def test_nothing_is_started(job: Job, changes: dict[str, str]) -> None:
    job.environment |= changes
    assert job.run(hook=True) == job.run(hook=False)
    # What `setsid` starts, it starts before the job ends; another start would follow later.
    done = subprocess.run([str(job.start), "detached"], env=job.environment, check=False)
    assert done.returncode == 0 or "SLURMD_NODENAME" in changes
    assert "SLURMD_NODENAME" in changes or job.starts() == []


def test_a_task_prolog_prints_nothing_and_leaves_the_group_of_slurm(job: Job) -> None:
    """Slurm waits for the output of a prolog, and then kills its process group."""
    with subprocess.Popen(
        [str(job.start)],
        env=job.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, preexec_fn=os.setpgrp,  # noqa: PLW1509 - as Slurm does
    ) as prolog:  # fmt: skip
        assert prolog.communicate(timeout=20)[0] == b""
        assert prolog.returncode == 0
        with contextlib.suppress(ProcessLookupError):
            os.killpg(prolog.pid, signal.SIGKILL)
    wait_for(job.starts)


def test_a_prolog_without_processes_ends_well(job: Job) -> None:
    tools = job.folder / "bin"
    tools.mkdir()
    (tools / "setsid").write_text("#!/bin/sh\necho no process >&2; exit 1\n")
    (tools / "setsid").chmod(0o755)
    job.environment["PATH"] = str(tools)
    done = subprocess.run([str(job.start)], env=job.environment, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
