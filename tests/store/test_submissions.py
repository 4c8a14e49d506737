"""Submissions on disk: kept before and after, found by number, name and `last`."""

from __future__ import annotations

import stat
from datetime import datetime, timedelta, timezone
from pathlib import Path

import msgspec
import pytest

from teho.errors import InputError
from teho.model.allocation import Allocation
from teho.model.job import Submission
from teho.model.run import FORMAT_VERSION, Node, Run
from teho.store.index import runs_of_job
from teho.store.layout import create_run_directory
from teho.store.submissions import find_submission, keep, new_directory, submissions

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=timezone.utc)


def submitted(home: Path, mark: str, minute: int = 0, **facts: object) -> Submission:
    directory = new_directory(home, mark)
    one = Submission(
        mark=mark,
        scheduler="slurm",
        cluster="puhti",
        submitted_at=NOW + timedelta(minutes=minute),
        directory="/",
        script=str(directory / "job.sh"),
        **facts,  # type: ignore[arg-type]
    )
    keep(home, one)
    return one


def test_what_is_kept_is_found_again(tmp_path: Path) -> None:
    first = submitted(tmp_path, "teho=b", 1, job="12;puhti", name="train")
    second = submitted(tmp_path, "teho=a", 2, job="13", name="train")
    assert submissions(tmp_path) == ([first, second], [])
    for reference in ("12", "12;puhti", "12_4", "12.3", "12+0"):
        assert find_submission(tmp_path, reference) == first
    for reference in ("13", "last", "train"):
        assert find_submission(tmp_path, reference) == second
    with pytest.raises(InputError, match="teho status"):
        find_submission(tmp_path, "14")


def test_the_number_comes_once_the_answer_is_there(tmp_path: Path) -> None:
    one = submitted(tmp_path, "teho=a")
    assert find_submission(tmp_path, "last").job is None
    keep(tmp_path, msgspec.structs.replace(one, job="99"))
    assert find_submission(tmp_path, "99").mark == "teho=a"


def test_a_damaged_file_hides_no_other(tmp_path: Path) -> None:
    one = submitted(tmp_path, "teho=a", job="5")
    (new_directory(tmp_path, "teho=b") / "submission.json").write_text("{")
    found, problems = submissions(tmp_path)
    assert found == [one]
    assert len(problems) == 1
    assert "submission.json" in problems[0]


def test_only_the_owner_can_read(tmp_path: Path) -> None:
    submitted(tmp_path, "teho=a")
    path = tmp_path / "jobs" / "a"
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE((path / "submission.json").stat().st_mode) == 0o600


def test_nothing_was_ever_submitted(tmp_path: Path) -> None:
    assert submissions(tmp_path) == ([], [])


def test_the_runs_of_a_job_are_its_own(tmp_path: Path) -> None:
    def recorded(name: str, minute: int, scheduler: str, job_id: str) -> Path:
        started_at = NOW + timedelta(minutes=minute)
        node = Node(
            name="n1",
            started_at=started_at,
            period_s=1.0,
            allocation=Allocation(scheduler=scheduler, job_id=job_id),
        )
        run_id = f"{started_at:%Y%m%d-%H%M%S}-{name}"
        run = Run(
            format=FORMAT_VERSION, id=run_id, command=("x",), started_at=started_at, host="n1"
        )
        directory = create_run_directory(tmp_path, run_id, msgspec.json.encode(run))
        (directory / "nodes" / "n1.json").write_bytes(msgspec.json.encode(node))
        return directory

    recorded("before-the-numbers-came-again", -60, "slurm", "12")
    recorded("of-another-scheduler", 1, "local", "12")
    recorded("of-another-job", 1, "slurm", "120")
    mine = [recorded("task", 2, "slurm", "12_1"), recorded("whole", 3, "slurm", "12")]
    assert runs_of_job(tmp_path, submitted(tmp_path, "teho=a", job="12;puhti")) == mine
