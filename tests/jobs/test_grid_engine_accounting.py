"""What qacct prints of jobs: one record, several hosts, several runs."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

import pytest

from teho.model.accounted import AccountedJob
from teho.model.job import JobState
from teho.schedulers.backend import Selection
from teho.schedulers.grid_engine.accounting import history_of_job, history_since, read_jobs

DATA = Path(__file__).parents[1] / "data" / "schedulers" / "grid-engine-8.1"
RULE = "=" * 62


def read(text: str) -> list[AccountedJob]:
    return list(read_jobs(text.splitlines(keepends=True)))


def record(**changes: str) -> str:
    """Return a real record with some lines changed."""
    lines = (DATA / "qacct.txt").read_text().splitlines()
    changed = [
        f"{key:<12} {changes[key]}" if (key := line.partition(" ")[0]) in changes else line
        for line in lines
    ]
    return "\n".join([*changed, ""])


def test_a_real_record() -> None:
    (found,) = read((DATA / "qacct.txt").read_text())
    assert (found.id, found.user, found.scheduler, found.source) == (
        "40", "user", "grid_engine", "qacct",
    )  # fmt: skip
    assert (found.cores, found.gpus, found.elapsed_s, found.time_limit_s) == (10, 1, 1, 1800)
    assert found.cpu_s == pytest.approx(0.007)
    assert found.read_written_bytes == round(34.603 * 1024)
    assert found.state is JobState.COMPLETED
    assert found.memory_peak_bytes == round(4.391 * 1024) * 1024


@pytest.mark.parametrize("name", ["qacct-again", "qacct-array", "qacct-exit3", "qacct-killed"])
def test_every_real_output_is_read(name: str) -> None:
    text = (DATA / f"{name}.txt").read_text()
    found = read(text)
    assert found
    assert all(one.elapsed_s is not None and one.user for one in found)


def test_a_job_on_two_hosts_has_one_line() -> None:
    text = record(hostname="node1", cpu="100.000s") + record(hostname="node2", cpu="60.000s")
    (found,) = read(text)
    assert (found.cpu_s, found.nodes, found.hosts) == (160, 2, ("node1", "node2"))


def test_a_job_that_ran_again_has_two_runs() -> None:
    later = {
        "start_time": "Fri Nov 20 14:46:23 2026",
        "end_time": "Fri Nov 20 14:46:24 2026",
    }
    first, second = read(record() + record(**later))
    assert first.id == second.id
    assert first.started_at < second.started_at  # type: ignore[operator]


def test_no_cpu_time_is_not_zero() -> None:
    (found,) = read(record(cpu="0.000s"))
    assert found.cpu_s is None


def test_no_record_is_no_job_and_a_broken_one_is_an_error() -> None:
    assert read("") == []
    assert read("Total System Usage\n    WALLCLOCK\n") == []
    with pytest.raises(ValueError, match="without a jobnumber"):
        read(f"{RULE}\nqname gpu.q\n")


def test_questions() -> None:
    one = history_of_job("40.3", "anna")
    assert one is not None
    assert one.argv == ("qacct", "-j", "40", "-t", "3")
    assert history_of_job("train", "anna") is None
    since = datetime(2026, 11, 20, 12, tzinfo=timezone.utc)
    mine = history_since(Selection(since=since, user="anna", account="p"))
    assert mine.argv[:7] == ("qacct", "-o", "anna", "-P", "p", "-b", mine.argv[6])
    assert mine.argv[7:] == ("-j", "*")
    assert mine.queue is not None
    assert mine.queue.argv == ("qstat", "-xml", "-r", "-u", "anna")
    every = history_since(Selection(since=since)).queue
    assert every is not None
    assert every.argv[-1] == "*"
