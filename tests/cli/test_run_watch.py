"""`teho run --notify` and `--if-stuck`."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace

import pytest

from step_tasks import step_environment
from teho.cli import run_watch as run_watch_module
from teho.cli.run_watch import RunWatch, StuckAction, WatchPlan, _Watcher, read_action
from teho.config.settings import Settings
from teho.errors import InputError, UnitError
from teho.model.finding import Evidence, Severity
from teho.show.loaded import LoadedRun
from teho.store import slices

Teho = Callable[..., subprocess.CompletedProcess[str]]

SOON = """
import sys
from teho.cli import main, run_watch
from teho.store import slices
slices._END_S = 1.2
run_watch._CHECK_S = 0.5
sys.argv[0] = "teho"
main()
"""
"""`teho` that looks each half second, and takes the last 1.2 s of a program for its last 45 s."""
SELDOM = """
from teho.observe import stays
from teho.show import report_pause
from teho.store import long_stays
pauses = iter([1.0] * 10)
report_pause.report_pause_s = lambda *_: next(pauses, 1e6)
long_stays._LEAST_S = 2.0
stays._MARK_S = 1.0
"""
"""After ten reports, no other one is due, as if each took a minute."""
THRESHOLDS = """
[run_stuck]
silent_min_s = 1.5
no_steps_min_s = 1.5
"""
HANGS = """
    import os, signal, sys, teho, threading, time
    told = []
    def checkpoint(*_):
        open(sys.argv[1], "w").write("saved")
        os._exit(7)
    signal.signal(signal.SIGUSR1, checkpoint)
    for _ in range(30):
        teho.step()
        time.sleep(0.01)
    lock = threading.Lock()
    lock.acquire()
    if sys.argv[2:]:
        lock.acquire(timeout=float(sys.argv[2]))
    else:
        lock.acquire()
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("15m=notify", StuckAction(900.0, None)),
        ("2h=end", StuckAction(7200.0, signal.SIGTERM)),
        ("90s=USR1", StuckAction(90.0, signal.SIGUSR1)),
        ("90s=sigusr2", StuckAction(90.0, signal.SIGUSR2)),
    ],
)
def test_actions(text: str, expected: StuckAction) -> None:
    assert read_action(text) == expected


@pytest.mark.parametrize("text", ["15m", "15m=", "15m=halt", "=end", "soon=end", "15=end"])
def test_actions_that_are_none(text: str) -> None:
    with pytest.raises((InputError, UnitError)):
        read_action(text)


def test_a_notification_without_a_target_is_refused(teho: Teho) -> None:
    ended = teho("run", "--if-stuck", "15m=notify", "--", "true")
    assert ended.returncode == 2
    assert "--if-stuck 15m=notify needs --notify" in ended.stderr


def teller(tmp_path: Path) -> tuple[str, Path]:
    """Return a command that appends event and title to a file, and this file."""
    out = tmp_path / "told"
    command = tmp_path / "tell"
    command.write_text(f'#!/bin/sh\necho "$TEHO_EVENT: $TEHO_TITLE" >> {out}\ncat >> {out}\n')
    command.chmod(0o700)
    return str(command), out


def test_the_end_of_a_run_is_sent_with_its_report(teho: Teho, tmp_path: Path) -> None:
    command, out = teller(tmp_path)
    ended = teho(
        "run", "--name", "short", "--notify", command, "--quiet", "--", "sh", "-c", "exit 3"
    )
    assert ended.returncode == 3
    assert ended.stderr == ""
    first, *rest = out.read_text().splitlines()
    assert first.startswith("ended: short: ")
    assert any("exit code 3" in line for line in rest)


def test_a_failed_notification_changes_neither_exit_code_nor_output(teho: Teho) -> None:
    ended = teho("run", "--quiet", "--notify", "false", "--", "echo", "done")
    assert (ended.returncode, ended.stdout) == (0, "done\n")
    assert ended.stderr == "teho: --notify false did not work: exit code 1\n"
    assert "--notify false did not work: exit code 1." in teho("report").stdout


def test_a_failed_notification_is_in_the_report_of_a_step_too(
    teho: Teho, home: Path, tmp_path: Path
) -> None:
    first, other = (step_environment(home, rank, nodes=1, per_node=2) for rank in (0, 1))
    argv = ["run", "--quiet", "--notify", "false", "--", "sleep", "1"]
    with subprocess.Popen(
        [sys.executable, "-m", "teho", *argv], env=other, stderr=subprocess.PIPE, text=True
    ) as peer:
        ended = teho(*argv, env=first)
        said = peer.communicate(timeout=60)[1] + ended.stderr
    # Only the task that began the recording tells.
    assert (ended.returncode, peer.returncode) == (0, 0)
    assert said == "teho: --notify false did not work: exit code 1\n"
    shown = teho("report").stdout
    assert "all 2 tasks with exit code 0" in shown
    assert "--notify false did not work: exit code 1." in shown


_SHORTENED = """\
from teho.cli import main, run_watch
from teho.show import report_pause
run_watch._CHECK_S = 1.5
report_pause.report_pause_s = lambda *_: 0.0
main()
"""
"""`teho` that looks at the run every 1.5 s instead of every 20 s, whatever this costs."""


def job_that_ends_in(left_s: int) -> dict[str, str]:
    """Return what the scheduler gives to a step of a job that began an hour ago."""
    now_s = int(time.time())
    return {
        "SLURM_JOB_ID": str(os.getpid()),
        "SLURM_STEP_ID": "0",
        "SLURM_JOB_START_TIME": str(now_s - 3600),
        "SLURM_JOB_END_TIME": str(now_s + left_s),
    }


def test_the_user_is_notified_ten_minutes_before_the_limit(home: Path, tmp_path: Path) -> None:
    command, out = teller(tmp_path)
    # The process that watches has the lowest priority, so the program waits for its message.
    wait = f"for i in $(seq 450); do grep -q time_limit {out} && exit; sleep 0.1; done"
    argv = ["run", "--name", "train", "--quiet", "--notify", command, "--", "sh", "-c", wait]
    began_s = time.monotonic()
    subprocess.run(
        [sys.executable, "-c", _SHORTENED, *argv],
        env={**os.environ, **job_that_ends_in(605)},
        stderr=subprocess.DEVNULL,
        timeout=60,
        check=True,
    )
    told = [line for line in out.read_text().splitlines() if ": train: " in line]
    assert re.fullmatch(
        r"time_limit: train: The job reaches its time limit in (10 min|9 min \d+ s)\.", told[0]
    )
    assert [line.partition(":")[0] for line in told] == ["time_limit", "ended"]
    # The scheduler's times are whole seconds.
    assert time.monotonic() - began_s > 3


@pytest.mark.parametrize(("left_s", "due_s"), [(7200, 6600.0), (500, float("inf"))])
def test_no_notification_of_a_limit_that_is_far_or_was_always_near(
    teho: Teho, tmp_path: Path, left_s: int, due_s: float
) -> None:
    teho("run", "--quiet", "--", "true", env=job_that_ends_in(left_s))
    command, out = teller(tmp_path)
    directory = LoadedRun.open("last").directory
    watcher = _Watcher(WatchPlan((command,), None), Settings(), directory, os.getpid())
    watcher.check()
    assert not out.exists()
    assert watcher._limit_due_s == pytest.approx(time.monotonic() + due_s, abs=60)


def test_a_target_that_cannot_work_is_refused_before_the_program_starts(teho: Teho) -> None:
    ended = teho("run", "--notify", "no-such-command", "--", "echo", "done")
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert "no-such-command is not a command that can be executed" in ended.stderr


def test_the_watching_process_does_not_belong_to_the_program(teho: Teho) -> None:
    options = ("--if-stuck", "15m=end", "--every", "200ms")
    ended = teho("run", *options, "--", sys.executable, "-c", "import time; time.sleep(1)")
    assert ended.returncode == 0, ended.stderr
    loaded = LoadedRun.open("last")
    stat = loaded.summary.nodes[0].stats["job_processes"]
    assert stat.max == 1


def test_a_process_that_never_gets_a_recording_ends() -> None:
    watch = RunWatch(WatchPlan((), None), Settings(), 1)
    assert watch.leave() == []


class _Finding:
    kind = "run_stuck"
    sentence = "The run is stuck: no step for 10 min."
    action = "End the program."
    evidence = (Evidence("time since the last step", 600.0, "s"),)
    severity = Severity.CRITICAL


def test_a_stuck_run_is_reported_once_and_ended_after_the_time(
    teho: Teho, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    teho("run", "--quiet", "--name", "stuck", "--", "true")
    directory = LoadedRun.open("last").directory
    command, out = teller(tmp_path)
    sleeper = subprocess.Popen(["sleep", "60"])
    plan = WatchPlan((command,), StuckAction(900.0, signal.SIGTERM))
    watcher = _Watcher(plan, Settings(), directory, sleeper.pid)
    clock = [1000.0]
    monkeypatch.setattr("teho.cli.run_watch.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(LoadedRun, "findings", property(lambda _: [_Finding()]))
    watcher.check()
    assert not out.exists()  # stuck for 10 min; the user gave 15
    assert sleeper.poll() is None
    watcher._report_due_s = float("inf")  # as after a report of many nodes
    clock[0] += 299.0
    assert not watcher.is_due()
    clock[0] += 2.0
    assert watcher.is_due()
    watcher.check()
    assert sleeper.wait(10) == -signal.SIGTERM
    assert out.read_text().splitlines()[0] == f"stuck: stuck: {_Finding.sentence}"
    assert watcher.troubles == [
        "the run was stuck for 15 min 1 s, so Teho sent SIGTERM to the program (--if-stuck)"
    ]
    clock[0] += 60.0
    watcher.check()
    assert out.read_text().count("stuck: stuck:") == 1


def test_a_run_that_continues_is_no_longer_stuck(
    teho: Teho, monkeypatch: pytest.MonkeyPatch
) -> None:
    teho("run", "--quiet", "--", "true")
    watcher = _Watcher(
        WatchPlan((), StuckAction(60.0, None)), Settings(), LoadedRun.open("last").directory, 1
    )
    found = [_Finding()]
    monkeypatch.setattr(LoadedRun, "findings", property(lambda _: found))
    watcher.check()
    assert watcher._stuck_s is not None
    found.clear()
    watcher.check()
    assert watcher._stuck_s is None


def test_a_costly_report_is_made_less_often(teho: Teho, monkeypatch: pytest.MonkeyPatch) -> None:
    teho("run", "--quiet", "--", "true")
    watcher = _Watcher(WatchPlan((), None), Settings(), LoadedRun.open("last").directory, 1)
    assert watcher.is_due()
    clock, used = [900.0], iter([2.0, 5.0, 6.2])
    monkeypatch.setattr("teho.cli.run_watch.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(run_watch_module, "_cpu_s", lambda: next(used))
    watcher.check()  # imports what all reports need: this time does not count
    clock[0] = 911.0
    assert watcher.is_due()
    clock[0] = 1000.0
    watcher.check()
    for later_s, is_due in ((21.0, False), (59.0, False), (61.0, True)):
        clock[0] = 1000.0 + later_s
        assert watcher.is_due() is is_due  # 1.2 s of CPU time in 60 s are 2 %
    # The notification about the time limit does not wait for the next report.
    watcher._limit_due_s, clock[0] = 1030.0, 1031.0
    assert watcher.is_due()
    # Neither does a run that may be stuck.
    watcher._limit_due_s = float("inf")
    for has_grown in (False, True):
        stays = SimpleNamespace(have_grown=partial(bool, has_grown))
        watcher._stays = stays  # type: ignore[assignment] # a stand-in with the one method in use
        assert watcher.is_due() is has_grown


def hanging(
    tmp_path: Path, action: str, *arguments: str, steps: int = 30, before: str = ""
) -> tuple[int, list[str], list[str]]:
    """Run a program that hangs; return the exit code, what was told, and the lines of stderr.

    Args:
        tmp_path: an empty folder.
        action: for `--if-stuck`.
        arguments: further arguments of the program.
        steps: number of its steps before.
        before: code that `teho` executes first.
    """
    program = tmp_path / "hangs.py"
    program.write_text(dedent(HANGS).replace("range(30)", f"range({steps})"))
    (tmp_path / "thresholds.toml").write_text(THRESHOLDS)
    command, out = teller(tmp_path)
    ended = subprocess.run(
        [
            sys.executable, "-c", before + SOON, "run", "--name", "hangs", "--notify", command,
            "--if-stuck", action, "--every", "200ms", "--",
            sys.executable, str(program), str(tmp_path / "saved"), *arguments,
        ],
        env={**os.environ, "TEHO_THRESHOLDS": str(tmp_path / "thresholds.toml")},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    return ended.returncode, out.read_text().splitlines(), ended.stderr.splitlines()


def test_a_program_that_hangs_is_reported_and_continues(tmp_path: Path) -> None:
    code, told, _ = hanging(tmp_path, "3s=notify", "25")
    assert code == 0
    (first,) = [line for line in told if line.startswith("stuck:")]
    assert first.startswith("stuck: hangs: The run is stuck: no step for ")
    assert "`lock.acquire(timeout=float(sys.argv[2]))` (hangs.py:" in first
    assert any(line.startswith("ended: hangs: ") for line in told)


def test_a_program_that_hangs_gets_the_signal(tmp_path: Path) -> None:
    code, told, _ = hanging(tmp_path, "3s=USR1")
    assert code == 7
    assert (tmp_path / "saved").read_text() == "saved"
    assert sum(line.startswith("stuck: hangs: The run is stuck") for line in told) == 1
    assert "so Teho sent SIGUSR1 to the program (--if-stuck)" in " ".join(
        one.what for one in LoadedRun.open("last").run.troubles
    )


def test_a_program_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, told, _ = hanging(tmp_path, "3s=end")
    assert code == -signal.SIGTERM
    assert not (tmp_path / "saved").exists()
    assert any(line.startswith("stuck: hangs: The run is stuck") for line in told)
    monkeypatch.setattr(slices, "_END_S", 1.2)
    settings = Settings(thresholds=str(tmp_path / "thresholds.toml"))
    loaded = LoadedRun(LoadedRun.open("last").directory, settings)
    assert loaded.findings[0].kind == "run_stuck"


def test_a_program_that_hangs_does_not_wait_for_the_next_report(tmp_path: Path) -> None:
    code, told, _ = hanging(tmp_path, "3s=end", steps=2000, before=SELDOM)
    assert code == -signal.SIGTERM
    (first,) = [line for line in told if line.startswith("stuck:")]
    assert "`lock.acquire()` (hangs.py:" in first
