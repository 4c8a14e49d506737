"""What happens when a job's time is nearly up, in a real shell."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from schedulers.script.script_parts import environment, put_stubs, script_of
from teho.schedulers.script.write import ScriptOptions

CATCHES = """
import signal, sys, time
# `with`: if the signal comes while Python closes a file that it deletes, SystemExit is lost.
def say(word):
    with open(sys.argv[1], "a") as file:
        file.write(word)
def caught(*_):
    say("caught\\n")
    sys.exit(3)
signal.signal(signal.SIGUSR1, caught)
say("ready\\n")
while True:
    time.sleep(0.02)  # not signal.pause(): the signal may come just before it
"""
# As torchrun: starts the program, waits for it, and knows nothing of the signal.
STARTS = """
import subprocess, sys
sys.exit(subprocess.call(sys.argv[sys.argv.index('--no-python') + 1:]))
"""
# As srun: hands a signal on to all processes of its task.
HANDS_ON = """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
setsid "$@" &
task=$!
trap 'kill -USR1 -- -$task' USR1
wait $task || wait $task
"""


@pytest.mark.parametrize(
    ("cluster", "request_", "requeue", "code", "said"),
    [
        ("narval", {}, True, 3, "requeue 7\n"),
        ("narval", {"gpus": 8, "nodes": 2}, False, 3, ""),
        ("narval", {"gpus": 8, "launcher": "torchrun"}, True, 3, "requeue 7\n"),
        ("narval", {"gpus": 4, "launcher": "launch"}, True, 3, "requeue 7\n"),
        ("arc4", {}, True, 99, ""),
        ("arc4", {}, False, 3, ""),
        ("arc4", {"gpus": 2, "launcher": "torchrun"}, True, 99, ""),
        ("arc4", {"launcher": "launch"}, True, 99, ""),
    ],
)
def test_the_program_gets_the_signal_and_the_job_is_requeued(
    cluster: str, request_: dict[str, object], requeue: bool, code: int, said: str, tmp_path: Path
) -> None:
    stubs = put_stubs(tmp_path / "stubs")
    (tmp_path / "catches.py").write_text(CATCHES)
    (stubs / "srun").write_text(HANDS_ON)
    (stubs / "teho").write_text(f'#!/bin/bash\nexec {sys.executable} -m teho "$@"\n')
    (stubs / "torchrun").write_text(f'#!/bin/bash\nexec {sys.executable} -c "{STARTS}" "$@"\n')
    (stubs / "scontrol").write_text('#!/bin/bash\n[[ $1 == show ]] || echo "$@" >> "$WRITTEN"\n')
    seen, written = tmp_path / "seen", tmp_path / "written"
    (stubs / "sleep").write_text(f"#!/bin/bash\nuntil grep -qs ready {seen}; do :; done\n")
    (stubs / "sleep").chmod(0o755)
    written.touch()
    command = (sys.executable, str(tmp_path / "catches.py"), str(seen))
    options = ScriptOptions(framework="none", signal_before_s=90, requeue=requeue)
    script = script_of(cluster, options, command=command, **request_)
    (tmp_path / "job.sh").write_text(script.text)
    job = subprocess.Popen(
        ["bash", "--noprofile", tmp_path / "job.sh"],
        env=environment(stubs, written), stdin=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        while not seen.exists() or "ready" not in seen.read_text():
            assert job.poll() is None
            time.sleep(0.01)
        if cluster == "narval":  # on arc4, the script has a timer of its own
            os.kill(job.pid, signal.SIGUSR1)  # Slurm, by B:, the script's shell alone
        assert job.wait(60) == code
        patience = iter(range(2000))
        while left_of(job.pid) and next(patience, None) is not None:
            time.sleep(0.01)
        assert left_of(job.pid) == []  # no timer either
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
    assert seen.read_text() == "ready\ncaught\n"
    assert written.read_text() == said


def left_of(group: int) -> list[int]:
    """Return the living processes of a process group."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, of = path.read_text().rpartition(")")[2].split()[:3]
            found += [int(path.parent.name)] if int(of) == group and state != "Z" else []
    return found


def test_slurm_signals_the_program_itself_if_nothing_follows() -> None:
    text = script_of("narval", ScriptOptions(signal_before_s=90)).text
    assert "\n#SBATCH --signal=USR1@90\n" in text
    assert "trap" not in text
