"""`teho run --keep-output`: what a program prints arrives as it came, and its beginning stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest

import teho
from support import TEHO
from teho.observe.stdout_capture import KEPT_BYTES

RUN = [*TEHO, "run", "--quiet", "--keep-output", "--every", "100ms", "--probe", "off", "--"]
MUCH = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 12289); sys.stderr.write('e')"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TEHO_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def kept(home: Path) -> bytes:
    (run,) = (home / "runs").glob("[0-9]*")
    path = run / "stdout"
    assert path.stat().st_mode & 0o777 == 0o600
    return path.read_bytes()


@contextmanager
def talking_to(script: str) -> Iterator[tuple[subprocess.Popen, TextIO, TextIO]]:
    argv = [*RUN, "sh", "-c", script]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True) as program:
        assert program.stdin
        assert program.stdout
        yield program, program.stdin, program.stdout


def test_every_byte_arrives_and_the_first_mebibyte_is_kept(home: Path) -> None:
    done = subprocess.run([*RUN, sys.executable, "-c", MUCH], capture_output=True, check=True)
    assert done.stdout == bytes(range(256)) * 12289
    assert done.stderr == b"e"
    assert kept(home) == done.stdout[:KEPT_BYTES]


def test_lines_come_while_the_program_runs(home: Path) -> None:
    with talking_to("echo first; read line; echo $line") as (program, stdin, stdout):
        assert stdout.readline() == "first\n"
        stdin.write("second\n")
        stdin.close()
        assert stdout.read() == "second\n"
        assert program.wait(60) == 0
        assert kept(home) == b"first\nsecond\n"


def test_a_reader_that_goes_ends_the_program_as_it_does_without_teho(home: Path) -> None:
    script = f"{' '.join(RUN)} yes | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "y\n141\n"
    assert kept(home).startswith(b"y\ny\n")


def test_a_closed_output_is_closed_for_the_program(home: Path) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{' '.join(RUN)} bash -c 'echo x' >&-"], capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "Bad file descriptor" in done.stderr
    (run,) = (home / "runs").glob("[0-9]*")
    (trouble,) = json.loads((run / "run.json").read_text())["troubles"]
    assert "the output of the program is not stored" in trouble["what"]
    assert trouble.get("elapsed_s", 0.0) < 60.0


def test_a_python_that_is_built_for_an_old_system_keeps_it_too(home: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os\nvars(os).pop('memfd_create', None)\n")
    done = subprocess.run(
        [*RUN, "echo", "x"], env=os.environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True,
        check=True,
    )  # fmt: skip
    assert done.stdout == b"x\n"
    assert kept(home) == b"x\n"


def test_a_full_disk_is_reported(home: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*RUN, "yes"], stdout=full, check=False)
    assert done.returncode == -signal.SIGPIPE
    (run,) = (home / "runs").glob("[0-9]*")
    assert "its pipe was closed: No space left on device" in (run / "run.json").read_text()


@pytest.mark.usefixtures("home")
def test_what_is_printed_after_the_supervisor_was_killed_arrives() -> None:
    with talking_to("echo $$; read line; echo $line") as (program, stdin, stdout):
        stdout.readline()
        program.send_signal(signal.SIGKILL)
        program.wait(60)
        stdin.write("later\n")
        stdin.close()
        assert stdout.read() == "later\n"


def test_ctrl_c_loses_nothing_of_what_is_printed_on_the_way_out(home: Path) -> None:
    code = (
        "import signal, sys, time\n"
        "def end(*_): print('on the way out', flush=True); sys.exit(3)\n"
        "signal.signal(signal.SIGINT, end); print('ready', flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [*RUN, sys.executable, "-c", code], stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as program:  # fmt: skip
        assert program.stdout
        assert program.stdout.readline() == "ready\n"
        os.killpg(program.pid, signal.SIGINT)
        assert program.stdout.read() == "on the way out\n"
        assert program.wait(60) == 3
        assert kept(home) == b"ready\non the way out\n"


def test_what_its_children_print_later_arrives_and_is_not_waited_for_long(
    home: Path, tmp_path: Path
) -> None:
    # The child waits until the run has ended, so no time has to be measured.
    late = '(until [ -e "$0" ]; do sleep 0.1; done; echo late) &'
    with subprocess.Popen(
        [*RUN, "sh", "-c", f"echo own; {late} exit 0", tmp_path / "ended"],
        stdout=subprocess.PIPE, text=True,
    ) as program:  # fmt: skip
        assert program.wait(60) == 0
        (tmp_path / "ended").touch()
        assert kept(home) == b"own\n"
        (run,) = (home / "runs").glob("[0-9]*")
        # Who waits for them does not record them.
        assert teho.load(str(run)).table("node")["elapsed_s"].to_pylist()[-1] < 5
        assert program.stdout
        assert program.stdout.read() == "own\nlate\n"


def test_who_passes_on_is_no_process_of_the_program(home: Path) -> None:
    counts: set[int] = set()
    # On a busy machine, the first sample with processes may come late.
    for seconds in ("1", "4", "16"):
        subprocess.run([*RUN, "sleep", seconds], check=True)
        for run in (home / "runs").glob("[0-9]*"):
            found = teho.load(str(run)).table("node")["job_processes"].to_pylist()
            counts |= {count for count in found if count}
        if counts:
            break
    assert counts == {1}


def test_without_room_for_it_the_end_is_recorded(home: Path) -> None:
    limited = f"ulimit -f 200; exec {' '.join(RUN)} head -c 1000000 /dev/zero"  # of 1 KiB each
    subprocess.run(["bash", "-c", limited], stdout=subprocess.PIPE, check=True)
    (run,) = (home / "runs").glob("[0-9]*")
    said = (run / "run.json").read_text()
    assert "the output of the program is not stored: [Errno 27] File too large" in said
    assert '"exit_code":0' in said
    assert not list(run.glob(".stdout*"))


def test_it_needs_a_program() -> None:
    done = subprocess.run(
        [*TEHO, "run", "--keep-output", "--job", "1"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "--keep-output has no effect with --job" in done.stderr
