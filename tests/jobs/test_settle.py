"""A recording of `teho always` gets the end of its job from the accounting.

The twins' tests ask a real accounting; here its answers are made up.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from made_runs import BEGAN, make_run
from teho.jobs import settle as module
from teho.jobs.settle import settle
from teho.model.job import Job, JobState
from teho.store.automatic import automatic_runs
from teho.store.read import read_run

HOUR = timedelta(hours=1)
ENDED = Job(
    id="4000",
    number="4000",
    state=JobState.FAILED,
    exit_code=3,
    started_at=BEGAN,
    ended_at=BEGAN + HOUR,
)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, (3600.0, 3, None, "failed")),
        ({"state": JobState.TIMED_OUT, "exit_code": None}, (3600.0, None, None, "timed_out")),
        ({"exit_code": None, "signal": 9}, (3600.0, None, 9, "failed")),
        # The accounting counts whole seconds, so a job may end before its recording began.
        ({"ended_at": BEGAN - timedelta(seconds=0.9)}, (0.0, 3, None, "failed")),
        ({"ended_at": BEGAN - HOUR}, None),
        ({"ended_at": None}, None),
        ({"id": "4000_7"}, None),
        ({"state": JobState.RUNNING}, None),
        ({"state": JobState.UNKNOWN}, None),
    ],
)
def test_the_end_of_a_job(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, object],
    expected: tuple[object, ...] | None,
) -> None:
    directory = make_run(home, 0, is_automatic=True, elapsed_s=None, cluster="puhti", gpus=1)
    job = msgspec.structs.replace(ENDED, **changes)
    monkeypatch.setattr(module, "accounting_of_all", lambda _, numbers: {numbers[0]: (job,)})
    assert settle(home, automatic_runs(home)) == (expected is not None)
    end = read_run(directory).end
    found = end and (end.elapsed_s, end.exit_code, end.signal, end.job_state)
    assert found == expected
    assert [node.name for node in read_run(directory).nodes] == ["g1"]
    assert "nodes" not in msgspec.json.decode((directory / "run.json").read_bytes())


def test_one_question_for_all_jobs_without_an_end(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, elapsed_s in enumerate((None, 60.0, None)):
        make_run(home, number, is_automatic=True, elapsed_s=elapsed_s, cluster="puhti")
    make_run(home, 3, is_automatic=True, elapsed_s=None)  # not in a job
    asked = []
    monkeypatch.setattr(module, "accounting_of_all", lambda _, numbers: asked.append(numbers) or {})
    assert settle(home, automatic_runs(home)) == 0
    assert asked == [["4000", "4002"]]
