"""`teho submit`, `status` and `cancel` with the scheduler of this machine: real processes."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from support import TEHO
from teho.cli.submitted import all_with_account
from teho.model.job import Job, JobState, Submission
from teho.show.build.jobs import JobView

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "cli"
PLAN = ["--cluster", "birch", "--local", "--framework", "none"]

Teho = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(autouse=True)
def clusters(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Put made-up clusters beside the real ones; leave no job behind."""
    monkeypatch.setenv("TEHO_CLUSTERS", str(DATA / "clusters"))
    monkeypatch.chdir(tmp_path)
    yield
    if not (home / "jobs").exists():
        return
    subprocess.run([*TEHO, "cancel", "last"], capture_output=True, check=False)


def test_a_job_is_followed_to_its_end_with_its_log_its_cost_and_its_exit_code(
    teho: Teho, tmp_path: Path
) -> None:
    script = "for i in 1 2 3; do echo line $i; sleep 1; done; exit 3"  # seen running, also if slow
    result = teho("submit", *PLAN, "--follow", "--name", "three", "--", "bash", "-c", script)
    assert result.returncode == 3
    assert result.stdout == "line 1\nline 2\nline 3\n"
    said = result.stderr
    assert "teho: submitted job 1 to this machine, with the plan for Birch, gpu" in said
    assert "job 1 running" in said
    assert "✗ Job 1 failed with exit code 3 after" in said
    assert "free of charge here (on birch, the job would cost" in said
    assert [path.name for path in tmp_path.glob("*.out")] == ["local-1.out"]


def test_only_the_number_goes_to_standard_output(teho: Teho) -> None:
    result = teho("submit", *PLAN, "--", "true")
    assert result.returncode == 0
    assert result.stdout == "1\n"
    assert "`teho status 1 --follow` follows the job" in result.stderr


def test_a_recorded_job_brings_its_report(teho: Teho) -> None:
    result = teho("submit", *PLAN, "--record", "--follow", "--", "sleep", "0.5")
    assert result.returncode == 0
    assert "✓ Job 1 completed" in result.stderr
    assert (result.stdout + result.stderr).count("Full report") == 1
    assert "no recording" not in result.stderr


def test_submit_and_status_name_the_log_and_the_recording(
    teho: Teho, home: Path, tmp_path: Path
) -> None:
    submitted = teho("submit", *PLAN, "--record", "--", "sleep", "0.5")
    assert f"teho: log: {tmp_path}/local-1.out\n" in submitted.stderr
    assert "`teho report 1`" in submitted.stderr
    _until(lambda: "completed" in teho("status", "1").stdout)
    (run,) = (path.name for path in (home / "runs").iterdir())
    shown = teho("status", "1").stdout
    assert f"  log {tmp_path}/local-1.out\n" in shown
    assert f"  recording {run}: `teho report {run}`\n" in shown
    (row,) = json.loads(teho("status", "1", "--format", "json").stdout)
    assert (row["log"], row["recordings"]) == (f"{tmp_path}/local-1.out", [run])


def test_a_local_job_needs_no_cluster(teho: Teho) -> None:
    result = teho("submit", "--local", "--gpus", "0", "--cpus", "1", "--follow", "--", "echo", "up")
    assert result.returncode == 0, result.stderr
    assert result.stdout == "up\n"
    assert "submitted job 1 to this machine, " in result.stderr
    assert "with the plan for" not in result.stderr


def test_cluster_and_account_can_be_set_once(teho: Teho) -> None:
    set_once = {"TEHO_CLUSTER": "birch", "TEHO_ACCOUNT": "tree_1"}
    result = teho("submit", "--gpus", "1", "--dry-run", "--", "true", env=set_once)
    assert result.returncode == 0, result.stderr
    assert "#SBATCH --account=tree_1\n" in result.stdout
    other = teho("submit", "--account", "b", "--dry-run", "--", "true", env=set_once)
    assert "#SBATCH --account=b\n" in other.stdout


def test_status_and_cancel(teho: Teho) -> None:
    teho("submit", *PLAN, "--name", "long", "--", "sleep", "60")
    teho("submit", *PLAN, "--name", "short", "--", "true")
    _until(lambda: "completed" in teho("status", "short").stdout)
    listed = teho("status").stdout
    assert "long" in listed
    assert "running" in listed
    (row,) = json.loads(teho("status", "long", "--format", "json").stdout)
    assert row["jobs"][0]["state"] == "running"
    assert row["submission"]["name"] == "long"
    assert teho("cancel", "long").returncode == 0
    _until(lambda: "cancelled" in teho("status", "long").stdout)
    again = teho("cancel", "long")
    assert again.returncode == 0, "cancelling twice is no error"
    assert again.stderr == "teho: job 1 has already ended: cancelled\n"
    followed = teho("status", "long", "--follow")
    assert followed.returncode == 1
    assert "Job 1 cancelled" in followed.stderr


def test_an_array_is_one_job_of_several_tasks(teho: Teho) -> None:
    command = ["bash", "-c", "echo $SLURM_ARRAY_TASK_ID; exit $((SLURM_ARRAY_TASK_ID == 2))"]
    result = teho("submit", *PLAN, "--array", "1-3", "--follow", "--", *command)
    assert result.returncode == 1
    assert "tasks: 2 completed, 1 failed" in result.stderr


def test_an_interrupted_follower_does_not_end_the_job(teho: Teho) -> None:
    argv = [*TEHO, "submit", *PLAN, "--follow", "--", "bash", "-c", "echo up; sleep 60"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert b"job 1 continues. Next: `teho status 1 --follow`" in said
    assert "running" in teho("status", "1").stdout


def test_bytes_that_are_no_text_reach_the_program(teho: Teho) -> None:
    argv = [*TEHO, "submit", *PLAN, "--follow", "--", "printf", "%s", b"caf\xe9"]
    done = subprocess.run(argv, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"caf\xe9"
    assert r"caf\udce9" in teho("status", "--format", "json").stdout.replace("\\\\", "\\")


def test_a_task_is_cancelled_by_its_number_and_a_name_is_no_number(teho: Teho) -> None:
    teho("submit", *PLAN, "--name", "1-long", "--", "sleep", "60")
    result = teho("cancel", "1-long")
    assert result.returncode == 0
    assert "job 1 is cancelled" in result.stderr


def test_a_dry_run_prints_the_script_and_submits_nothing(teho: Teho, home: Path) -> None:
    arguments = ["--cluster", "birch", "--account", "tree_123", "--gpus", "2", "--time", "2h"]
    result = teho("submit", *arguments, "--dry-run", "--", "python", "train.py")
    assert result.returncode == 0
    assert result.stdout.startswith("#!/bin/bash\n")
    assert "#SBATCH --account=tree_123\n" in result.stdout
    assert not (home / "jobs").exists()
    plan = teho("plan", *arguments, "--script", "--", "python", "train.py")
    assert plan.stdout == result.stdout, "a dry run shows what plan shows, and submit sends"


def test_a_recorded_job_finds_this_very_teho(teho: Teho) -> None:
    arguments = ["--cluster", "birch", "--account", "a", "--record", "--dry-run", "--", "true"]
    path = str(Path(sys.executable).with_name("teho"))
    assert f"srun {shlex.quote(path)} run -- true\n" in teho("submit", *arguments).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--", "true"], 2, "does not belong to a cluster that Teho knows"),
        (["--cluster", "bich", "--", "true"], 2, "did you mean 'birch'?"),
        (["--cluster", "birch", "--", "true"], 2, "Birch needs one (GUIDE accounts.md)"),
        (["--cluster", "birch", "--gpus", "99", "--", "true"], 1, "✗"),
        (["--cluster", "birch", "--time", "2"], 2, "Missing argument"),
        (["--cluster", "birch", "--account", "tree_1", "--", "true"], 2, "sbatch"),
        (["--cluster", "birch", "--account", "a", "--log", "no/x", "--", "true"], 2, "mkdir -p no"),
        (["--cluster", "birch", "--account", "a", "--after", "it", "--", "true"], 2, "no job 'it'"),
    ],
)
def test_a_mistake_is_one_line_with_the_next_step(
    teho: Teho, home: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int,
    words: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("PATH", str(home))  # no sbatch there, wherever this runs
    result = teho("submit", *arguments)
    assert result.returncode == code, result.stderr
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert not list((home / "jobs").glob("*/submission.json"))


def test_a_job_waits_for_one_that_is_named(teho: Teho) -> None:
    teho("submit", *PLAN, "--name", "first", "--", "true")
    arguments = ("--cluster", "birch", "--account", "a", "--dry-run", "--", "true")
    for reference in ("first", "last", "1"):
        script = teho("submit", "--after", reference, *arguments).stdout
        assert "#SBATCH --dependency=afterok:1\n" in script
    refused = teho("submit", *PLAN, "--after", "77", "--", "true")
    assert refused.returncode == 2
    assert "job 77 is not known" in refused.stderr


def test_nothing_is_submitted_that_cannot_be_written_down(teho: Teho, home: Path) -> None:
    home.write_text("no directory")
    result = teho("submit", *PLAN, "--", "true")
    assert result.returncode == 2
    assert "the job is not submitted" in result.stderr
    assert "export TEHO_HOME=" in result.stderr
    home.unlink()


SLURM = ["--cluster", "birch", "--account", "a", "--", "true"]


@pytest.fixture
def sbatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Write an sbatch that does what it is told."""

    def write(lines: str) -> None:
        path = tmp_path / "bin" / "sbatch"
        path.parent.mkdir()
        # What it is asked before the submission itself, it does not answer.
        path.write_text(f"#!/bin/bash\n[[ $1 == --test-only ]] && exit 0\n{lines}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{path.parent}:/usr/bin:/bin")

    return write


def test_a_job_whose_number_cannot_be_stored_is_still_printed(
    teho: Teho, sbatch: Callable[[str], None]
) -> None:
    sbatch('rm -r "$TEHO_HOME/jobs"; echo 4711')
    result = teho("submit", *SLURM)
    assert result.returncode == 0
    assert result.stdout == "4711\n"
    assert "job 4711 is submitted, but its number cannot be written" in result.stderr


def test_an_interrupt_while_the_scheduler_is_asked_leaves_a_trace(
    sbatch: Callable[[str], None], tmp_path: Path, home: Path
) -> None:
    sbatch(f"touch {tmp_path}/asked; sleep 60")
    with subprocess.Popen([*TEHO, "submit", *SLURM], stderr=subprocess.PIPE) as process:
        _until((tmp_path / "asked").exists)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert b"it is not known whether the job was submitted. Next: run `teho status`" in said
    assert list((home / "jobs").glob("*/submission.json"))


def test_jobs_that_were_not_submitted_with_teho(teho: Teho) -> None:
    assert "no jobs submitted in the last week" in teho("status").stderr
    for command in ("status", "cancel"):
        result = teho(command, "77")
        assert result.returncode == 2
        assert "no job '77' was submitted by `teho submit`" in result.stderr


@pytest.mark.parametrize("name", ["a b", "quote'\"d", "$(touch pwned)", "-n", "ü\n#", "%j"])
def test_any_name_survives(teho: Teho, tmp_path: Path, name: str) -> None:
    result = teho("submit", *PLAN, "--name", name, "--follow", "--", "printf", "%s|", name, "x y")
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"{name}|x y|"
    assert not (tmp_path / "pwned").exists()


def _until(condition: Callable[[], bool]) -> None:
    for _ in range(100):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("it did not come true within 10 s")


def test_only_the_tasks_of_an_array_are_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def task(index: str, **facts: Any) -> Job:
        return Job(id=f"7_{index}", number="7", task=index, **facts)

    unborn = Job(id="7", number="7", state=JobState.COMPLETED)  # as sacct shows it for a moment
    known = task("1", state=JobState.COMPLETED, cpu_s=1.0)
    monkeypatch.setattr("teho.schedulers.jobs.accounting", lambda *_: (unborn, known))
    submission = Submission(
        mark="teho=a", scheduler="slurm", cluster="birch", job="7", array="1-2",
        submitted_at=datetime.now(timezone.utc), directory="/", script="/job.sh",
    )  # fmt: skip
    queued = (unborn, task("1", state=JobState.COMPLETED), task("2", state=JobState.FAILED))
    (view,) = all_with_account([JobView(submission=submission, jobs=queued)], tmp_path)
    assert view.jobs == (known, queued[2])


def _squeue(tmp_path: Path, lines: str) -> None:
    path = tmp_path / "bin" / "squeue"
    path.write_text(f"#!/bin/bash\n{lines}\n")
    path.chmod(0o755)


def test_the_exit_code_of_status_shows_that_no_scheduler_answers(
    teho: Teho, sbatch: Callable[[str], None], tmp_path: Path
) -> None:
    sbatch("echo 4711")
    assert teho("submit", *SLURM).returncode == 0
    _squeue(tmp_path, "echo 'squeue: error: Access denied' >&2; exit 1")
    result = teho("status")
    assert result.returncode == 1
    assert "Access denied" in result.stderr
    assert "4711" in result.stdout  # what is known of it is told all the same


def test_a_name_that_is_no_text_does_not_hide_the_other_jobs(
    teho: Teho, sbatch: Callable[[str], None], tmp_path: Path, home: Path
) -> None:
    sbatch("echo 4711")
    assert teho("submit", *SLURM).returncode == 0
    (script,) = (home / "jobs").glob("*/job.sh")
    mark, now = script.parent.name, str(int(time.time()))
    cells = ["4711", "RUNNING", "None", "gpu", "a", "1", "1", "N/A", "n1", now, now,
             "N/A", "0:10", "1:00", r"caf\xe9", f"teho={mark}", "x"]  # fmt: skip
    row = r"\x1d" + r"\x1f\x1e".join(cells) + r"\n"
    _squeue(tmp_path, f"printf '{row}'")
    result = teho("status", "--format", "json")
    assert result.returncode == 0, result.stderr
    (view,) = json.loads(result.stdout)
    assert view["jobs"][0]["name"] == r"caf\udce9"
    assert view["jobs"][0]["state"] == "running"


def test_variables_that_sbatch_would_obey_are_reported(
    teho: Teho, sbatch: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    sbatch("env | grep SBATCH_QOS >&2; echo 4711")
    monkeypatch.setenv("SBATCH_QOS", "debug")
    said = teho("submit", *SLURM).stderr
    assert "SBATCH_QOS is set but not used, because the job would then" in said
    assert "SBATCH_QOS=debug" not in said
