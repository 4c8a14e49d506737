"""`teho launch` becomes the program: streams, signals, arguments, and what cannot be started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from launch_process import TELL, launch, line, told

from support import TEHO


def test_the_program_is_the_process_that_was_started():
    with subprocess.Popen([*TEHO, "launch", "--", *TELL], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        found = json.loads(process.stdout.read())
    assert found["pid"] == process.pid
    assert found["parent"] == os.getpid()


def test_nothing_of_teho_stays_open_or_behind():
    # The list itself is one descriptor more.
    for words in ([], [*TEHO, "launch", "--"]):
        seen = subprocess.run(
            [*words, sys.executable, "-c", "import os; print(os.listdir('/proc/self/fd'))"],
            capture_output=True, text=True, check=True, timeout=60, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert seen.stdout == "['0', '1', '2', '3']\n"
    found = launch("--", "cat", "/proc/self/cmdline")
    assert found.stdout == b"cat\0/proc/self/cmdline\0"


def test_a_single_rank():
    found = told()["env"]
    expected = {
        "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1",
        "NODE_RANK": "0", "MASTER_ADDR": "127.0.0.1",
        "OMP_NUM_THREADS": found["MKL_NUM_THREADS"],
    }  # fmt: skip
    assert expected.items() <= found.items()
    assert 1 <= int(found["OMP_NUM_THREADS"]) <= len(os.sched_getaffinity(0))
    assert "TF_CONFIG" not in found
    # The rest of the environment is what it was.
    assert os.environ.items() <= {**found, "_": os.environ.get("_", "")}.items()


def test_arguments_arrive_as_they_are():
    words = ["a b", "it's", 'say "so"', "line\nline", "$HOME", "*", "--bind", "--", ""]
    assert json.loads(launch("--", *TELL, *words).stdout)["argv"] == words
    raw = [b"\xff\xfe", "ä".encode("latin-1")]
    result = launch("--", "printf", "%s;", *raw)
    assert result.stdout == b"\xff\xfe;\xe4;"


def test_a_variable_that_is_no_text_stays(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(os.environb, b"ODD", b"\xff=\n")
    assert launch("--", "printenv", "ODD").stdout == b"\xff=\n\n"


def test_input_is_the_programs():
    result = launch("--", "sh", "-c", "read first; echo got $first; cat", input=b"one\ntwo\n")
    assert result.stdout == b"got one\ntwo\n"


def test_signals_mask_folder_and_priority_are_as_without():
    def seen(command: Sequence[str], program: str) -> str:
        before = "trap '' USR1 INT; ulimit -n 77; umask 027; cd /usr; exec"
        return subprocess.run(
            ["nice", "-n", "3", "sh", "-c", f"{before} {' '.join(command)} {program}"],
            capture_output=True, text=True, check=True, timeout=60,
        ).stdout  # fmt: skip

    signals = "grep -E '^Sig[BCI]|^Shd' /proc/self/status"
    # SIGINT and SIGUSR1, and nothing of Python's; what stands above 31 may be the C library's, and
    # under nohup SIGHUP, the first, is ignored already.
    ignored = int(seen([], signals).partition("SigIgn:")[2].split()[0], 16)
    assert ignored & (1 << 31) - 2 == 0x202
    for program in (signals, "sh -c 'umask; ulimit -n; pwd; nice'"):
        assert seen([*TEHO, "launch", "--"], program) == seen([], program)


@pytest.mark.parametrize(("value", "stays"), [(None, False), ("C.UTF-8", True)])
def test_the_locale_is_as_python_found_it(value: str | None, stays: bool):
    # In the C locale, Python sets LC_CTYPE for itself and for what it starts (PEP 538).
    kept = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith("LC_") and name not in {"LANG", "PYTHONUTF8"}
    }
    environment = kept if value is None else {**kept, "LC_CTYPE": value}
    result = subprocess.run(
        [*TEHO, "launch", "--", "printenv", "LC_CTYPE"],
        env=environment, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert result.stdout == (f"{value}\n" if stays else "")


@pytest.mark.parametrize("closed", ["0", "1", "2"])
def test_a_closed_stream_stays_closed(closed: str):
    def seen(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        script = f"exec {closed}>&-; exec {' '.join(command)} ls /proc/self/fd"
        # Of a batch script there is something to say, which must not land among the results.
        environment = {**os.environ, "SLURM_JOB_ID": "1", "SLURM_NTASKS": "4"}
        return subprocess.run(
            ["sh", "-c", script], env=environment, capture_output=True, text=True, check=False,
            timeout=60,
        )  # fmt: skip

    without, result = seen([]), seen([*TEHO, "launch", "--"])
    said, _, rest = result.stderr.partition("\n") if closed != "2" else ("teho: ", "", "")
    assert said.startswith("teho: ")
    assert (result.returncode, result.stdout, rest) == (
        without.returncode, without.stdout, without.stderr,
    )  # fmt: skip


def test_a_closed_stderr_does_not_hinder():
    environment = {"SLURM_JOB_ID": "1", "SLURM_NTASKS": "4"}
    for target in ("/dev/full", None):
        if target:
            with Path(target).open("w") as full:
                result = launch("--", "echo", "ran", env=environment, stdout=subprocess.PIPE,
                                stderr=full, capture_output=False)  # fmt: skip
        else:
            reading, writing = os.pipe()
            os.close(reading)
            result = launch("--", "echo", "ran", env=environment, stdout=subprocess.PIPE,
                            stderr=writing, capture_output=False)  # fmt: skip
            os.close(writing)
        assert (result.returncode, result.stdout) == (0, b"ran\n")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder on the PATH, with programs of all kinds."""
    folder = tmp_path / "my programs"
    folder.mkdir()
    texts = {
        "plain": 'echo plain "$0" "$@"\n',
        "lost": "#!/nonexistent/python\n",
        "locked": "#!/bin/sh\n",
        "foreign": "\x7fELF\x02\x01\x01" + "\0" * 60,
        "empty": "",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o644 if name == "locked" else 0o755)
    return folder


@pytest.mark.parametrize(
    ("command", "code", "reason"),
    [
        ("nosuch", 127, "nosuch: command not found"),
        ("{}/nosuch", 127, "/nosuch: command not found"),
        ("{}/plain/nosuch", 127, "/plain/nosuch: command not found"),
        ("{}/locked", 126, "/locked: not executable"),
        ("locked", 126, "locked: not executable"),
        ("{}", 126, "my programs: not executable"),
        ("{}/lost", 126, "/lost: the file's interpreter does not exist"),
        ("{}/foreign", 126, "/foreign: the file is built for another kind of machine"),
        ("foreign", 126, "foreign: the file is built for another kind of machine"),
    ],
)
def test_what_cannot_be_started(programs: Path, command: str, code: int, reason: str):
    result = launch("--", command.format(programs), env={"PATH": str(programs)})
    assert line(result, code).endswith(reason)


@pytest.mark.parametrize("command", ["plain", "{}/plain"])
def test_a_script_without_a_first_line_goes_to_the_shell(programs: Path, command: str):
    result = launch("--", command.format(programs), "a b", env={"PATH": str(programs)})
    assert result.stdout.decode() == f"plain {programs}/plain a b\n"
    assert launch("--", f"{programs}/empty").returncode == 0


def test_more_arguments_than_linux_takes(tmp_path: Path):
    assert launch("--env", "BIG=" + "x" * 120_000, "--", "true").returncode == 0
    # For a container each variable is there three times.
    fake = tmp_path / "apptainer"
    fake.touch(mode=0o755)
    pairs = [word for number in range(20) for word in ("--env", f"B{number}=" + "x" * 60_000)]
    result = launch(*pairs, "--", str(fake), "-e")
    assert line(result, 126).endswith("apptainer: Argument list too long")


def test_the_exit_code_and_the_end_are_the_programs():
    assert launch("--", "sh", "-c", "exit 3").returncode == 3
    assert launch("--", "sh", "-c", "kill -9 $$").returncode == -9
