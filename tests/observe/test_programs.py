"""Which programs other than Python ran, counted from /proc of real processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from teho.model.run import ProgramUse
from teho.observe import programs
from teho.observe.programs import Programs


@contextmanager
def running(*command: str) -> Iterator[int]:
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        # In the first moments after exec, the kernel gives no command line.
        while not Path(f"/proc/{process.pid}/cmdline").read_bytes():
            assert process.poll() is None
            time.sleep(0.001)
        yield process.pid
        assert process.stdin is not None
        process.stdin.close()


def test_a_command_that_runs_again_is_one_command() -> None:
    counted = Programs()
    for _ in range(3):
        with running("cat", "-", "--", "/dev/null") as pid:
            counted.read([os.getpid(), pid])
            counted.read([os.getpid(), pid])
    with running("cat", "-u") as pid:
        counted.read([pid])
    counted.read([])
    assert counted.samples == 8
    assert counted.most_seen() == (
        ProgramUse(
            name="cat", samples=7, processes=4, command="cat - -- /dev/null",
            command_samples=6, command_processes=3,
        ),
    )  # fmt: skip


def test_shells_python_and_ended_processes_are_left_out() -> None:
    counted = Programs()
    with (
        running("sh", "-c", "read x; true") as shell,
        running(sys.executable, "-c", "input()") as one,
    ):
        counted.read([shell, one, 2**22 + 1])
    assert counted.most_seen() == ()


def test_loops_of_shell_scripts(tmp_path: Path) -> None:
    script = tmp_path / "scan.sh"
    script.write_text("read x\nwhile read -r line; do\n  cut -f1 $line\ndone\n")
    counted = Programs()
    with running("sh", str(script)) as pid, running("sh", "-c", f"read x # {script}") as other:
        counted.read([pid, other])
        counted.read([pid, other])
    (loop,) = counted.scripts.loops()
    assert (loop.file, loop.line, loop.commands) == ("scan.sh", 2, ((3, "cut"),))


def test_secrets_are_masked() -> None:
    counted = Programs()
    with running("grep", "-e", "token=abc123", "-") as pid:
        counted.read([pid])
    assert [use.command for use in counted.most_seen()] == ["grep -e 'token=•••' -"]


def test_very_many_commands_are_counted_by_their_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_MOST_COMMANDS", 2)
    counted = Programs()
    with ExitStack() as stack:
        pids = [stack.enter_context(running("cat", "-", f"/none/{n}")) for n in range(4)]
        counted.read(pids)
    (use,) = counted.most_seen()
    assert (use.processes, use.command_processes) == (4, 1)
