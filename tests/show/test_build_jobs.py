"""Jobs on a terminal, in every state."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import msgspec
import pytest

from teho.model.job import Job, JobState, Submission
from teho.model.plan import Cost
from teho.show.build.jobs import JobView, jobs_document, state_sentence
from teho.show.html.page import render_html
from teho.show.text.document import render_text

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=timezone.utc)


def job(state: JobState, **facts: object) -> Job:
    return Job(id="7", number="7", state=state, **facts)  # type: ignore[arg-type]


def view(*jobs: Job, cost: Cost | None = None, **facts: object) -> JobView:
    shape: dict[str, object] = {"scheduler": "slurm", "cluster": "puhti", "job": "7"} | facts
    submission = Submission(
        mark="teho=a",
        submitted_at=NOW,
        directory="/",
        script="/job.sh",
        **shape,  # type: ignore[arg-type]
    )
    return JobView(submission=submission, jobs=jobs, cost=cost)


def shown(*views: JobView, width: int = 80) -> str:
    return render_text(jobs_document(views), width=width, color=False)


@pytest.mark.parametrize("state", JobState)
def test_every_state_has_words(state: JobState) -> None:
    assert state_sentence([job(state)])
    assert "_" not in state_sentence([job(state)])


def test_an_unknown_word_of_the_scheduler_is_shown() -> None:
    strange = job(JobState.UNKNOWN, state_as_written="TELEPORTING\x1b[31m")
    assert state_sentence([strange]) == r"in a state that Teho does not know, TELEPORTING\x1b[31m"


def test_a_waiting_job_says_why_and_until_when() -> None:
    later = (datetime.now(timezone.utc) + timedelta(days=40)).replace(hour=10, minute=5)
    text = state_sentence([job(JobState.PENDING, reason="Priority", expected_start_at=later)])
    assert text == (f"pending (Priority), expected to start {later.astimezone():%Y-%m-%d %H:%M}")
    assert state_sentence([job(JobState.PENDING, reason="None")]) == "pending"


def test_tasks_are_counted() -> None:
    tasks = [job(state) for state in [JobState.RUNNING] * 3 + [JobState.TIMED_OUT]]
    assert state_sentence(tasks) == "tasks: 3 running, 1 timed out"
    waiting = msgspec.structs.replace(job(JobState.PENDING), task="5-9%2")
    assert state_sentence([*tasks, waiting]) == "tasks: 5 pending, 3 running, 1 timed out"


def test_what_a_job_used_and_cost() -> None:
    cost = Cost(amount=0.00132, unit="GPU BU", sum="(1 GPU × 60) × 0.000022 h")
    done = job(
        JobState.FAILED,
        exit_code=3,
        elapsed_s=120.0,
        time_limit_s=600.0,
        cores=10,
        cpu_s=300.0,
        memory_peak_bytes=2 * 1024**3,
        memory_bytes=8 * 1024**3,
        node_list="r01g01",
        nodes=1,
    )
    assert shown(view(done, cost=cost)) == (
        "✗ Job 7 failed with exit code 3 after 2 min of 10 min\n"
        "  Cost 0.0013 GPU BU: (1 GPU × 60) × 0.000022 h · Nodes r01g01 ·\n"
        "  Cores used 2.5 (of 10, on average) · Memory 2.00 GiB (of 8.00 GiB)\n"
    )


def test_what_is_not_known_is_not_shown() -> None:
    done = job(JobState.COMPLETED)
    assert shown(view(done)) == "✓ Job 7 completed\n"


def test_a_job_of_this_machine_is_charged_to_no_one() -> None:
    cost = Cost(amount=3.0, unit="GPU BU", sum="1 GPU × 3 h = 3 GPU BU")
    local = view(job(JobState.COMPLETED, elapsed_s=1.0), cost=cost, scheduler="local")
    text = shown(local, width=120)
    assert "(on puhti, the job would cost 3 GPU BU: 1 GPU × 3 h = 3 GPU BU)" in text
    assert "3 GPU BU" not in shown(local, local, width=120)


def test_costs_of_one_unit_are_in_one_column() -> None:
    cost = Cost(amount=78.0, unit="GPU BU", sum="x")
    one = view(job(JobState.RUNNING, elapsed_s=60.0), cost=cost, name="a")
    other = view(job(JobState.UNKNOWN), name="b", job=None)
    text = shown(one, other)
    assert "Cost, GPU BU" in text
    assert text.startswith("i 2 jobs: 1 running, 1 unknown\n")
    assert text.splitlines()[4].split() == ["7", "a", "1", "min", "78", "running"]
    assert text.splitlines()[5].split() == ["?", "b", "–", "–", "not", "known"]


def test_jobs_have_a_page() -> None:
    page = render_html(jobs_document([view(job(JobState.RUNNING, node_list="r01g01"))] * 2))
    assert "2 jobs: 2 running" in page
    assert "running on r01g01" in page


def test_a_long_list_of_nodes_is_counted() -> None:
    nodes = ",".join(f"r{number:02d}g[01-09]" for number in range(500))
    job = Job(id="1", number="1", state=JobState.RUNNING, node_list=nodes, nodes=4500)
    said = state_sentence([job])
    assert said.startswith("running on 4500 nodes, r00g[01-09],r01g[01-09],")
    assert said.endswith("]…")
    assert len(said) < 100
