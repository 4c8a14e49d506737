"""The time from submission to result, with the waits of the user's past jobs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from experiment.samples import paced, place, whole_runs
from explain.scenario_parts import STARTED
from teho.cli import compare as command
from teho.cli import here
from teho.clusters.catalogue import load_cluster
from teho.experiment.compare import summed_up
from teho.experiment.queue import has_whole_runs, with_queue
from teho.experiment.verdict import Terms, judge
from teho.explain import bill
from teho.model.compared import Compared
from teho.model.plan import PastJob
from teho.model.run import Run
from teho.schedulers import history
from teho.show.build.compare import compare_document
from teho.show.html.page import render_html
from teho.show.json.noun import render_noun
from teho.show.text.document import render_text

FREE = Terms({}, {})


@pytest.fixture
def whole() -> Compared:
    """1 GPU takes 600 s, 8 cores take 3000 s."""
    runs = whole_runs(cpu_8=[1 / 3000] * 3, gpu_1=[1 / 600] * 3)
    return summed_up([judge(runs, FREE)], "", id="1f", command=("fit",))


def past(gpus: int, cores: int, *waits_s: float, partition: str = "any") -> list[PastJob]:
    return [PastJob(partition=partition, gpus=gpus, cores=cores, wait_s=one) for one in waits_s]


GPU_JOBS = past(1, 4, 60, 120, 7200, 9000) + past(1, 10, 8000, partition="gpu-long")
CORE_JOBS = past(0, 8, 10, 20, 30, 40, 50)
SAID = (
    "From submission to result, your jobs on Birch take 2 h 10 min with 1 GPU (median wait "
    "2 h, 5 jobs) and 50 min 30 s with 8 cores (median wait 30.0 s, 5 jobs)."
)


def test_the_wait_is_added_to_the_measured_time(whole: Compared) -> None:
    found = with_queue(whole, "Birch", [*GPU_JOBS, *CORE_JOBS, *past(4, 8, 0), *past(0, 2, 0)])
    known = found.points[0].from_submission
    assert known is not None
    assert known.larger_s == pytest.approx(7200 + 600)
    assert known.smaller_s == pytest.approx(30 + 3000)
    assert (known.larger_wait.jobs, known.smaller_wait.jobs) == (5, 5)


def test_text_page_and_json_have_it(whole: Compared) -> None:
    found = with_queue(whole, "Birch", [*GPU_JOBS, *CORE_JOBS])
    document = compare_document(found)
    text = render_text(document, width=300, color=False, detail="default")
    assert SAID in text
    assert "From submission to result" in render_html(document)
    point = json.loads(render_noun(found))["points"][0]
    assert point["from_submission"]["larger_s"] == pytest.approx(7800)


def test_a_sweep_has_it_at_each_value() -> None:
    runs = whole_runs(cpu_8=[1 / 3000] * 3, gpu_1=[1 / 600] * 3)
    points = [judge(runs, FREE, rows) for rows in (10.0, 20.0)]
    found = with_queue(
        summed_up(points, "rows", id="1f", command=("fit",)), "Birch", [*GPU_JOBS, *CORE_JOBS]
    )
    (listed,) = (one for one in compare_document(found).lists if one.key == "points")
    assert [SAID in item.details for item in listed.items] == [True, True]


def test_fewer_than_five_jobs_of_either_size_give_no_line(whole: Compared) -> None:
    for jobs in ([], GPU_JOBS, CORE_JOBS, [*GPU_JOBS[1:], *CORE_JOBS]):
        found = with_queue(whole, "Birch", jobs)
        assert found.points[0].from_submission is None
        assert all(fact.key != "from_submission" for fact in compare_document(found).facts)


def test_a_step_rate_is_not_a_time_to_the_end() -> None:
    runs = {place("cpu:8"): [paced(1.0)] * 3, place("gpu:1"): [paced(9.0)] * 3}
    found = summed_up([judge(runs, FREE)], "", id="1f", command=("fit",))
    assert not has_whole_runs(found)
    asked = with_queue(found, "Birch", [*GPU_JOBS, *CORE_JOBS])
    assert asked.points[0].from_submission is None


def test_the_scheduler_of_this_cluster_is_asked(
    whole: Compared, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    puhti, narval = load_cluster("puhti", {}), load_cluster("narval", {})
    asked: list[str] = []

    def jobs_of(scheduler: str, ask: object) -> tuple[PastJob, ...]:
        asked.append(scheduler)
        return (*GPU_JOBS, *CORE_JOBS)

    monkeypatch.setattr(history, "past_jobs_of_user", jobs_of)
    monkeypatch.setattr(here, "cluster_here", lambda: puhti)
    found = command._with_queue(whole, ())
    assert found.points[0].from_submission is not None
    assert found.points[0].from_submission.cluster == "Puhti"
    (run,) = (Run(format=1, id="a", command=("x",), started_at=STARTED, host="h"),)
    monkeypatch.setattr(bill, "cluster_of", lambda _: puhti)
    assert command._with_queue(whole, [run]) == found
    monkeypatch.setattr(bill, "cluster_of", lambda _: narval)
    assert command._with_queue(whole, [run]) == whole, "it was recorded somewhere else"
    monkeypatch.setattr(here, "cluster_here", lambda: None)
    assert command._with_queue(whole, ()) == whole
    assert asked == ["slurm", "slurm"]
    point = replace(whole.points[0], measure="pace")
    assert command._with_queue(replace(whole, points=(point,)), ()).points == (point,)
