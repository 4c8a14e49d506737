"""What sstat knows of a running job, from rows of real versions of Slurm."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from teho.model.accounted import AccountedJob, AccountedStep
from teho.model.job import JobState
from teho.schedulers.slurm.use_now import use_now
from teho.units import GIB, MIB


def step(name: str, **facts: Any) -> AccountedStep:
    return AccountedStep(**{"name": name, "state": JobState.RUNNING, "cpu_s": 0.0} | facts)


def running(*steps: AccountedStep, **facts: Any) -> AccountedJob:
    """Return a job that has run for one hour on four cores."""
    begin = datetime(2026, 11, 20, tzinfo=timezone.utc)
    own = {
        "id": "4711", "number": "4711", "raw_id": "4711", "state": JobState.RUNNING,
        "scheduler": "slurm", "source": "sacct", "cores": 4, "elapsed_s": 3600.0,
        "started_at": begin, "steps": steps or (step("batch"), step("extern")),
    }  # fmt: skip
    return AccountedJob(**own | facts)


def read(text: str, job: AccountedJob) -> AccountedJob | None:
    question = use_now(job)
    assert question is not None
    return question.read(text, job)


def test_tasks_of_arrays_have_their_own_number() -> None:
    question = use_now(running(id="4711_3", raw_id="4715"))
    assert question is not None
    assert question.argv[0] == "sstat"
    assert question.argv[-1] == "--jobs=4715"


@pytest.mark.parametrize(
    "facts",
    [
        {"state": JobState.COMPLETED, "ended_at": datetime(2026, 11, 21, tzinfo=timezone.utc)},
        {"state": JobState.PENDING, "started_at": None},
        # A run before the job was queued again.
        {"ended_at": datetime(2026, 11, 21, tzinfo=timezone.utc)},
    ],
)
def test_only_jobs_that_run_are_asked_for(facts: dict[str, Any]) -> None:
    assert use_now(running(**facts)) is None


def test_all_steps_add_up() -> None:
    ended = step("0", state=JobState.COMPLETED, cpu_s=100.0, memory_peak_bytes=GIB)
    text = (
        "4711.extern|1|00:00.000|904K|904K|cpu=00:00:00|cpu=00:00:00,mem=904K\n"
        "4711.batch|1|00:00:02|5120K|5120K|cpu=00:00:02,mem=5M|cpu=00:00:02,mem=5M\n"
        "4711.1|2|00:30:00|2.50G|2G|cpu=00:31:00,gres/gpumem=18446744073709551615,gres/gpuutil=7"
        "|cpu=01:00:10,mem=4G\n"
    )
    found = read(text, running(step("batch"), step("extern"), ended))
    assert found is not None
    assert found.cpu_s == 100 + 2 + 3610
    assert found.memory_peak_bytes == round(2.5 * GIB)
    assert found.used_until_now == "sstat"
    steps = {one.name: one for one in found.steps}
    assert set(steps) == {"batch", "extern", "0", "1"}
    assert steps["0"] == ended
    assert steps["batch"].memory_peak_bytes == 5 * MIB
    one = steps["1"]
    assert (one.tasks, one.cpu_s, one.memory_mean_bytes) == (2, 3610, 2 * GIB)
    assert (one.gpu_peak_percent, one.gpu_memory_peak_bytes) == (7.0, None)


def test_without_a_sum_it_is_the_mean_of_all_tasks() -> None:
    found = read("4711.batch|3|00:10:00|1G|1G||\n", running(step("batch")))
    assert found is not None
    assert found.cpu_s == 1800


@pytest.mark.parametrize(
    ("text", "cpu_s", "peak"),
    [
        # Slurm's largest number: the CPU time was not measured, the memory was.
        ("4711.batch|1|213503982334-14:25:51|1G|1G||", None, GIB),
        ("4711.batch|1||1G|1G||cpu=213503982334-14:25:51", None, GIB),
        # A step without figures may have done most of the work.
        ("4711.extern|1|00:00.000|1M|1M||cpu=00:00:00", None, MIB),
        ("4711.batch|1|00:10:00|0|0||", 600.0, None),
    ],
)
def test_what_was_not_measured_is_missing(text: str, cpu_s: float | None, peak: int | None) -> None:
    found = read(text, running())
    assert found is not None
    assert (found.cpu_s, found.memory_peak_bytes) == (cpu_s, peak)


@pytest.mark.parametrize(
    "text",
    ["", "sstat: something\n", "4711.batch|1|00:00.000|0|0||cpu=00:00:00\n", "4711.batch|1|\n"],
)
def test_an_answer_without_figures_changes_nothing(text: str) -> None:
    assert read(text, running()) is None
