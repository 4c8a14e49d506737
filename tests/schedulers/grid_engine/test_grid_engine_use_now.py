"""What qstat knows of a running job, from its real output."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from teho.model.accounted import AccountedJob
from teho.model.job import JobState
from teho.schedulers.grid_engine.use_now import use_now
from teho.units import GIB

REAL = (
    Path(__file__).parents[2] / "data" / "schedulers" / "grid-engine-8.1" / "qstat-j.txt"
).read_text()
LINE = "usage    1:                 "


def running(**facts: Any) -> AccountedJob:
    own = {
        "id": "28", "number": "28", "state": JobState.RUNNING, "scheduler": "grid_engine",
        "source": "qstat", "cores": 10, "elapsed_s": 3600.0,
        "started_at": datetime(2026, 11, 20, tzinfo=timezone.utc),
    }  # fmt: skip
    return AccountedJob(**own | facts)


def read(text: str, **facts: Any) -> AccountedJob | None:
    question = use_now(running(**facts))
    assert question is not None
    assert question.argv == ("qstat", "-j", "28")
    return question.read(text, running(**facts))


def test_the_cpu_time_and_the_traffic_are_read() -> None:
    found = read(f"job_number: 28\n{LINE}cpu=00:10:05, mem=1.0 GB s, io=0.5 GB, vmem=9G\n")
    assert found is not None
    assert found.cpu_s == 605.0
    assert found.read_written_bytes == GIB // 2
    assert found.memory_peak_bytes is None  # vmem is the address space
    assert found.used_until_now == "qstat"


def test_days_and_the_resident_memory_of_other_versions_are_read() -> None:
    found = read(f"{LINE}wallclock=2:00:00:00, cpu=1:02:03:04, io=1.0, maxrss=2.000G\n")
    assert found is not None
    assert found.cpu_s == 93784.0
    assert found.memory_peak_bytes == 2 * GIB


def test_each_task_of_an_array_has_its_own_line() -> None:
    text = f"{LINE}cpu=00:00:01, io=0\nusage    4:   cpu=00:00:09, io=0\n"
    found = read(text, id="28.4", task="4")
    assert found is not None
    assert found.cpu_s == 9.0


@pytest.mark.parametrize(
    "text",
    ["", REAL, f"{LINE}cpu=00:00:00, mem=0.00000 GB s, io=0.00003 GB\n", f"{LINE}cpu=x\n",
     f"{LINE}NONE\n", "Following jobs do not exist:\n28\n"],
)  # fmt: skip
def test_without_figures_there_is_no_answer(text: str) -> None:
    """Grid Engine takes its first sample of a job some seconds after its start."""
    assert read(text) is None


@pytest.mark.parametrize("facts", [{"state": JobState.PENDING}, {"source": "qacct"}])
def test_only_jobs_that_run_are_asked_for(facts: dict[str, Any]) -> None:
    assert use_now(running(**facts)) is None
