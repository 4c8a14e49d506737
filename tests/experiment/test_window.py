"""`teho run --window`: who ends a program, when, and what its recording says of that."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from step_tasks import only_run, step_environment
from support import TEHO
from teho.store.read import read_run

STEPS = """\
import pathlib, signal, subprocess, sys, time
import teho

child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
pathlib.Path("child").write_text(str(child.pid))
signal.signal(signal.SIGTERM, {handler})
for number in range({steps}):
    time.sleep(0.01)
    teho.step()
child.kill()
raise SystemExit(3)
"""
ENDLESS = 10**9


def program(handler: str = "signal.SIG_DFL", steps: int = ENDLESS) -> list[str]:
    return [sys.executable, "-c", STEPS.format(handler=handler, steps=steps)]


def is_gone(pid: int) -> bool:
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or ") Z " in state.read_text()


@pytest.mark.parametrize(
    "handler",
    ["signal.SIG_DFL", "signal.SIG_IGN", "lambda *_: sys.exit(0)", "lambda *_: sys.exit(5)"],
    ids=["dies", "ignores", "ends well", "ends badly"],
)
def test_once_its_pace_is_known_it_is_ended_with_all_that_it_started(
    teho, home: Path, tmp_path: Path, handler: str
) -> None:
    done = teho("run", "-q", "--window", "500ms", "--", *program(handler), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert is_gone(int((tmp_path / "child").read_text()))
    run = read_run(only_run(home))
    assert run.end is not None
    assert run.end.on_purpose == "measured long enough"
    assert run.nodes[0].sealed
    assert run.troubles == ()


def test_what_jobs_have_recorded_is_compared_by_its_pace(teho, tmp_path: Path) -> None:
    for variant in ("cpu:1", "cpu:2"):
        words = ("--window", "500ms", "--tag", "compare=a", "--tag", f"variant={variant}")
        assert teho("run", "-q", *words, "--", *program(), cwd=tmp_path).returncode == 0
    answer = json.loads(teho("compare", "--recorded", "compare=a", "--format", "json").stdout)
    for variant in answer["points"][0]["variants"]:
        (sample,) = variant["samples"]
        assert 20 < sample["steps_per_s"] < 101
        assert not sample["is_whole"]


def test_what_ends_before_or_shows_no_steps_comes_to_its_own_end(
    teho, home: Path, tmp_path: Path
) -> None:
    done = teho("run", "-q", "--window", "1h", "--", *program(steps=50), cwd=tmp_path)
    assert done.returncode == 3
    run = read_run(only_run(home))
    assert run.end is not None
    assert (run.end.exit_code, run.end.on_purpose, run.troubles) == (3, "", ())
    silent = [sys.executable, "-c", "import time; time.sleep(2.5); raise SystemExit(4)"]
    assert teho("run", "-q", "--window", "100ms", "--", *silent).returncode == 4


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda one: one.name)
def test_whom_somebody_else_ends_was_not_ended_on_purpose(
    home: Path, tmp_path: Path, number: signal.Signals
) -> None:
    words = [*TEHO, "run", "-q", "--window", "1h", "--", *program("signal.SIG_DFL")]
    with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.DEVNULL) as running:
        until_s = time.monotonic() + 60
        told = tmp_path / "child"
        while not (told.exists() and told.read_text()) and time.monotonic() < until_s:
            time.sleep(0.05)
        running.send_signal(number)
        assert running.wait(60) == -number
    os.kill(int(told.read_text()), signal.SIGKILL)
    run = read_run(only_run(home))
    assert run.end is not None
    assert (run.end.signal, run.end.on_purpose) == (number, "")


def test_a_task_of_several_runs_to_its_end_and_its_recording_says_why(
    home: Path, tmp_path: Path
) -> None:
    tasks = [
        subprocess.run(
            [*TEHO, "run", "-q", "--window", "100ms", "--", *program(steps=150)],
            env=step_environment(home, rank, nodes=2, per_node=1),
            cwd=tmp_path,
            timeout=120,
            check=False,
        )
        for rank in range(2)
    ]
    assert [task.returncode for task in tasks] == [3, 3]
    said = [trouble.what for task in read_run(only_run(home)).tasks for trouble in task.troubles]
    assert (
        said
        == [
            (
                "--window had no effect: this option needs a single program, but this task is "
                "one of several tasks"
            )
        ]
        * 2
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--window", "0s", "--", "true"], "--window 0s; expected a length of time above 0"),
        (["--window", "soon", "--", "true"], "'soon' is not a length of time"),
        (["--window", "1s", "--probe", "off", "--", "true"], "no effect with --probe off"),
        (["--window", "1s", "--job", "1"], "--window has no effect with --job"),
    ],
)
def test_a_window_that_cannot_be_is_refused_in_one_line(
    teho, home: Path, words: list[str], said: str
) -> None:
    done = teho("run", *words)
    assert done.returncode == 2
    assert said in done.stderr.splitlines()[-1]
    assert not (home / "runs").exists()


def test_after_a_set_time_it_is_ended_with_all_that_it_started(
    teho, home: Path, tmp_path: Path
) -> None:
    # It shows no steps: only the time can end it.
    script = f"sleep 1000 & echo $! > {tmp_path}/child; wait"
    done = teho("run", "-q", "--for", "1s", "--window", "100ms", "--", "bash", "-c", script)
    assert (done.returncode, done.stderr) == (0, "")
    assert is_gone(int((tmp_path / "child").read_text()))
    run = read_run(only_run(home))
    assert run.end is not None
    assert run.end.on_purpose == "stopped after the set time"
    assert 0.9 < run.end.elapsed_s < 10
    assert run.troubles == ()
    assert not any("probe" in note for node in run.nodes for note in node.notes)


def test_what_ends_before_the_set_time_has_its_own_end(teho, home: Path) -> None:
    assert teho("run", "-q", "--for", "1min", "--", "sh", "-c", "exit 4").returncode == 4
    run = read_run(only_run(home))
    assert run.end is not None
    assert (run.end.exit_code, run.end.on_purpose) == (4, "")


def test_several_tasks_are_ended_together_after_a_set_time(home: Path, tmp_path: Path) -> None:
    words = [*TEHO, "run", "-q", "--window", "100ms", "--for", "2s", "--", "sleep", "1000"]
    tasks = [
        subprocess.Popen(words, env=step_environment(home, rank, nodes=1, per_node=2), cwd=tmp_path)
        for rank in range(2)
    ]
    assert [task.wait(120) for task in tasks] == [0, 0]
    run = read_run(only_run(home))
    assert {task.end.on_purpose for task in run.tasks if task.end} == {"stopped after the set time"}
    assert len(run.tasks) == 2


def test_a_time_that_is_none_is_refused(teho) -> None:
    said = teho("run", "--for", "0s", "--", "true").stderr
    assert said.startswith("teho: --for 0s; expected a length of time above 0")
    assert (
        "--for has no effect with --probe off"
        in teho("run", "--for", "1s", "--probe", "off", "--", "true").stderr
    )
