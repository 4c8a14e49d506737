"""The tasks of an array: which there are, and which no list has."""

from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teho.model.job import Job, JobState, Submission
from teho.schedulers.array import count_tasks, tasks_of, with_missing


@pytest.mark.parametrize(
    ("array", "tasks"),
    [
        ("", (None,)),
        ("0", ("0",)),
        ("1-3", ("1", "2", "3")),
        ("1-7:3,20%4", ("1", "4", "7", "20")),
    ],
)
def test_arrays(array, tasks):
    assert tasks_of(array) == tasks


@pytest.mark.parametrize("array", ["x", "3-1", "1-", ",", "1-9999999", "-1"])
def test_arrays_that_are_none(array):
    with pytest.raises(ValueError, match="array"):
        tasks_of(array)


@given(st.integers(0, 9999), st.integers(0, 99), st.integers(1, 9))
def test_ranges_are_ranges(first, more, step):
    expected = tuple(map(str, range(first, first + more + 1, step)))
    assert tasks_of(f"{first}-{first + more}:{step}") == expected


def task(index: str, state: JobState = JobState.COMPLETED) -> Job:
    return Job(id=f"7.{index}", number="7", task=index, state=state)


def submission(array: str) -> Submission:
    return Submission(
        mark="teho=a",
        scheduler="grid_engine",
        cluster="aire",
        job="7",
        directory="/",
        script="/job.sh",
        submitted_at=datetime(2026, 11, 22, tzinfo=timezone.utc),
        array=array,
    )


def test_tasks_in_neither_list_are_not_known():
    *listed, unknown = with_missing(submission("1-9:2%2"), [task("1"), task("5")])
    assert listed == [task("1"), task("5")]
    assert (unknown.state, unknown.task) == (JobState.UNKNOWN, "3,7,9")
    assert count_tasks(unknown) == 3


@pytest.mark.parametrize(
    ("array", "jobs"),
    [
        pytest.param("1-2", [task("1"), task("2")], id="all are there"),
        pytest.param("1-9", [task("1"), task("2-9", JobState.CANCELLED)], id="as a range"),
        pytest.param("1-9", [task("1"), task("2", JobState.RUNNING)], id="one still runs"),
        pytest.param("1-9", [task("1"), task("2-4,...")], id="a list that was cut"),
        pytest.param("1-9", [Job(id="7", number="7", state=JobState.COMPLETED)], id="no task"),
        pytest.param("1-9", [], id="nothing"),
        pytest.param("", [Job(id="7", number="7", state=JobState.COMPLETED)], id="no array"),
    ],
)
def test_if_nothing_is_missing_nothing_is_added(array, jobs):
    assert with_missing(submission(array), jobs) == tuple(jobs)
