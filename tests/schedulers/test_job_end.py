"""The time limit of a job whose variables do not have it, as the scheduler reports it."""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from teho.model.allocation import Allocation
from teho.model.run import FORMAT_VERSION, Node, Run
from teho.schedulers import command
from teho.schedulers.job_end import asked_limit_s

BEGAN = datetime(2026, 11, 27, 8, 0, 0, tzinfo=timezone.utc)
QSTAT = """\
<?xml version='1.0'?><job_info><queue_info><job_list state="running">
<JB_job_number>4711</JB_job_number><JB_name>train</JB_name><state>r</state>
<JAT_start_time>{start}</JAT_start_time><queue_name>gpu@n1.example.org</queue_name>
<slots>1</slots>{asked}{task}</job_list></queue_info></job_info>
"""


def stub(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(0o755)


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(command, "_PAUSE_S", 0.01)
    return tmp_path


def squeue(
    folder: Path, *, job: str = "4711", state: str = "RUNNING", nodes: str = "n[1-2]",
    started_s: float = -60.0, limit: str = "1:00:00",
) -> None:  # fmt: skip
    """Let squeue print a job that started so many seconds after the run."""
    start = f"{BEGAN.timestamp() + started_s:.0f}"
    cells = [job, state, "None", "gpu", "p", "2", "4", "N/A", nodes, start, start, "0", "10:00",
             limit, "train", "(null)", "/job.sh"]  # fmt: skip
    row = "\\035" + "\\037\\036".join(cells)
    stub(folder, "squeue", f"printf '{row}\\n'; echo \"$@\" > {folder / 'asked'}")


def run(
    job: str | None = "4711", scheduler: str | None = "slurm", node_list: str = "n[1-2]"
) -> Run:
    allocation = Allocation(scheduler=scheduler, job_id=job, node_list=node_list)
    node = Node(name="n1", started_at=BEGAN, period_s=1.0, allocation=allocation)
    return Run(
        format=FORMAT_VERSION, id="r", command=("x",), started_at=BEGAN, host="n1", nodes=(node,)
    )


def test_the_limit_counts_from_the_start_of_the_job(commands: Path) -> None:
    squeue(commands)
    assert asked_limit_s(run(), commands) == 3540.0
    assert "--jobs=4711" in (commands / "asked").read_text()


def test_only_the_task_of_an_array_counts(commands: Path) -> None:
    squeue(commands, job="4711_3")
    assert asked_limit_s(run("4711_3"), commands) == 3540.0
    assert asked_limit_s(run("4711_4"), commands) is None


@pytest.mark.parametrize(
    "facts",
    [
        {"limit": "UNLIMITED"},
        {"limit": "INVALID"},
        {"state": "TIMEOUT"},
        {"state": "PENDING"},
        {"started_s": -3601.0},  # its end is over: the clocks or the limit are wrong
        {"started_s": 3600.0},  # a job that began after the run
        {"nodes": "m[1-2]"},  # a job of another cluster
    ],
)
def test_no_limit_is_made_up(commands: Path, facts: dict[str, object]) -> None:
    squeue(commands, **facts)
    assert asked_limit_s(run(), commands) is None


def test_without_an_answer_the_limit_is_not_known(commands: Path) -> None:
    stub(commands, "squeue", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    assert asked_limit_s(run(), commands) is None
    stub(commands, "squeue", "echo no row")
    assert asked_limit_s(run(), commands) is None
    stub(commands, "squeue", "echo 'Unable to contact slurm controller' >&2; exit 1")
    assert asked_limit_s(run(), commands) is None


def test_a_run_without_a_job_asks_nothing(commands: Path) -> None:
    squeue(commands)
    assert asked_limit_s(run(None), commands) is None
    assert asked_limit_s(run("4711", None), commands) is None
    assert not (commands / "asked").exists()


@pytest.mark.parametrize(
    ("asked", "limit_s"),
    [('<hard_request name="h_rt">7200</hard_request>', 7140.0), ("", None)],
)
def test_grid_engine(commands: Path, asked: str, limit_s: float | None) -> None:
    start = (BEGAN - timedelta(seconds=60)).astimezone().strftime("%Y-%m-%dT%H:%M:%S")
    answer = commands / "answer.xml"
    stub(commands, "qstat", f"cat {answer}")
    answer.write_text(QSTAT.format(start=start, asked=asked, task=""))
    job = run(scheduler="grid_engine", node_list="n1.example.org,n2.example.org")
    assert asked_limit_s(job, commands) == limit_s
    answer.write_text(QSTAT.format(start=start, asked=asked, task="<tasks>3</tasks>"))
    task = run("4711.3", scheduler="grid_engine", node_list="n1")
    assert asked_limit_s(task, commands) == limit_s
