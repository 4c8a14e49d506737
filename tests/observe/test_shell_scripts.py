"""The scripts of real shells are read once, and only if they are files."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from support import wait_for
from teho.observe.shell_scripts import ShellScripts

SCRIPT = """\
for run in first --token hunter2; do
    sleep 60
    cut -c 1 "$run" | sort
done
"""


def loops_of(process: subprocess.Popen[bytes]) -> list[tuple[str, int, str]]:
    wait_for(lambda: Path(f"/proc/{process.pid}/cmdline").read_bytes())
    scripts = ShellScripts()
    scripts.read([process.pid])
    os.killpg(process.pid, signal.SIGKILL)  # with its sleep
    process.wait()
    return [(loop.file, loop.line, loop.text) for loop in scripts.loops()]


@pytest.mark.parametrize("options", [[], ["-e"], ["-e", "-u"]])
def test_a_script_is_read_and_its_secrets_are_masked(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "fetch.sh").write_text(SCRIPT)
    process = subprocess.Popen(["bash", *options, "fetch.sh"], cwd=tmp_path, start_new_session=True)
    assert loops_of(process) == [("fetch.sh", 1, "for run in first --token •••")]


@pytest.mark.parametrize("option", ["-c", "-lc", "-ec"])
def test_a_command_is_no_file(tmp_path: Path, option: str) -> None:
    (tmp_path / "fetch.sh").write_text(SCRIPT)
    command = ["bash", option, "sleep 60; true", "fetch.sh"]
    assert loops_of(subprocess.Popen(command, cwd=tmp_path, start_new_session=True)) == []


def test_a_pipe_is_left_to_its_shell(tmp_path: Path) -> None:
    """The recorder must neither wait for a pipe, nor take a part of the script."""
    pipe = tmp_path / "script"
    os.mkfifo(pipe)
    process = subprocess.Popen(["bash", str(pipe)], stdout=subprocess.PIPE)
    wait_for(lambda: Path(f"/proc/{process.pid}/cmdline").read_bytes())
    scripts = ShellScripts()
    scripts.read([process.pid])
    assert scripts.loops() == ()
    pipe.write_text("echo whole\n")
    assert process.communicate(timeout=30)[0] == b"whole\n"


def test_a_script_that_is_gone_has_no_loops(tmp_path: Path) -> None:
    (tmp_path / "fetch.sh").write_text(SCRIPT)
    process = subprocess.Popen(["bash", "fetch.sh"], cwd=tmp_path, start_new_session=True)
    wait_for(lambda: b"fetch" in Path(f"/proc/{process.pid}/cmdline").read_bytes())
    (tmp_path / "fetch.sh").unlink()
    assert loops_of(process) == []


def test_processes_that_have_ended_are_forgotten() -> None:
    scripts = ShellScripts("/nowhere")
    for first in range(1, 10_000, 8):
        scripts.read(range(first, first + 8))
    assert len(scripts._known) == 8
