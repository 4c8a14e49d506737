"""`teho submit --trial`: where the trial runs, what its script does, and who is told to try."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from teho.cli import trial
from teho.clusters.catalogue import load_cluster
from teho.model.plan import Option
from teho.model.request import Request
from teho.model.run import Run
from teho.planner.answer import answer
from teho.store import index

NOW = datetime(2026, 11, 20, tzinfo=timezone.utc)
DRY = ("--even-if-retired", "--account", "project_1", "--framework", "none", "--dry-run")


@pytest.fixture(autouse=True)
def clusters(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put made-up clusters beside the real ones."""
    data = Path(__file__).parents[1] / "data" / "cli" / "clusters"
    monkeypatch.setenv("TEHO_CLUSTERS", str(data))


def tried(teho: Any, cluster: str, *more: str) -> tuple[list[str], str]:
    done = teho("submit", "--cluster", cluster, "--trial", *DRY, *more, "--", "python", "train.py")
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr


def test_a_trial_runs_in_the_test_partition_and_is_recorded(teho: Any) -> None:
    script, said = tried(teho, "puhti", "--time", "36h")
    assert {"#SBATCH --partition=gputest", "#SBATCH --time=0:05:00"} <= set(script)
    (program,) = (line for line in script if line.startswith("srun "))
    assert " run --window 10s --for 2min --tag trial=yes -- python train.py" in program
    assert said.startswith(
        "teho: the trial runs in partition gputest, with a time limit of 5 min\n"
    )


def test_without_a_test_partition_the_shortest_that_fits(teho: Any) -> None:
    script, said = tried(teho, "birch", "--gpus", "1")
    assert "#SBATCH --partition=whole" in script, "its jobs take a day at most"
    assert (
        "teho: the trial runs in partition whole, with a time limit of 5 min: no test partition of "
        "Birch fits the request; `--partition NAME` chooses another partition\n"
    ) in said
    script, said = tried(teho, "birch", "--partition", "gpu-small")
    assert "#SBATCH --partition=gpu-small" in script
    assert "no test partition" not in said
    _, said = tried(teho, "narval")
    assert "no test partition of Narval fits the request\n" in said


def test_a_site_that_refuses_short_jobs_gets_a_longer_limit(teho: Any) -> None:
    script, said = tried(teho, "arc4", "--gpus", "1")
    assert "with a time limit of 15 min" in said
    assert "#$ -l h_rt=00:15:00" in script


def test_a_trial_that_fits_nowhere_says_why(teho: Any) -> None:
    done = teho("submit", "--cluster", "puhti", "--trial", *DRY, "--gpus", "1000", "--", "true")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()


@pytest.mark.parametrize(
    ("options", "named", "instead"),
    [
        (("--array", "1-3"), "--array", "try one task"),
        (("--after", "17"), "--after", "a trial starts at once"),
        (("--requeue",), "--requeue", "a trial runs once"),
        (("--signal", "1min"), "--signal", "a trial ends after two minutes"),
        (("--local",), "--local", "`teho run --window 10s --for 2min -- COMMAND`"),
    ],
)
def test_what_a_trial_cannot_have_is_one_line(
    teho: Any, options: tuple[str, ...], named: str, instead: str
) -> None:
    done = teho("submit", "--cluster", "puhti", "--trial", *DRY[:-1], *options, "--", "true")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(
        f"teho: --trial cannot be used together with {named}; expected one of them. Next: "
    )
    assert instead in line


def planned(**needs: Any) -> Option:
    request = Request(command=("python", "-u", "code/train.py", "--epochs", "90"), **needs)
    return answer(request, [load_cluster("lumi", {})]).options[0]


def test_a_long_job_without_a_recorded_run_suggests_a_trial(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    runs: list[tuple[Path, Run | None]] = [(tmp_path, None)]
    monkeypatch.setattr(index, "newest_runs", lambda home: iter(runs))
    long = planned(gpus=4, time_s=4 * 3600.0)
    trial.say_if_untried(long, tmp_path)
    said = capsys.readouterr().err
    assert said == (
        "teho: this job requests 16 GPU-hours, and no run of train.py is recorded. "
        "To try the program for two minutes, add `--trial` to this command\n"
    )
    trial.say_if_untried(planned(gpus=4, time_s=3 * 3600.0), tmp_path)
    trial.say_if_untried(planned(gpus=0, time_s=48 * 3600.0), tmp_path)
    shell = replace(long.request, command=("bash", "-c", "true"))
    assert capsys.readouterr().err == "", "12 GPU-hours, or none, are not long"
    run = Run(format=1, id="a", command=("python3", "/x/train.py"), started_at=NOW, host="h")
    runs.append((tmp_path, run))
    trial.say_if_untried(long, tmp_path)
    assert capsys.readouterr().err == ""
    trial.say_if_untried(replace(long, request=shell), tmp_path)
    assert "no run of bash" in capsys.readouterr().err
