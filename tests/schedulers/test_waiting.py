"""What the scheduler says of a plan's options: a start, a no, or nothing."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from teho.clusters.catalogue import load_catalogue
from teho.errors import NoAnswerError, RefusedError
from teho.model.plan import Answer
from teho.model.request import Request
from teho.planner.answer import answer
from teho.schedulers import waiting
from teho.schedulers.waiting import as_the_scheduler_says
from teho.show.build.plan import plan_document
from teho.show.text.document import render_text

CLUSTERS = load_catalogue({"XDG_CONFIG_HOME": "/nonexistent"})
SOON = datetime(2026, 11, 20, 14, 0, tzinfo=timezone.utc)


def asked(monkeypatch: pytest.MonkeyPatch, says: Any, *clusters: str) -> Answer:
    scripts: list[str] = []

    def estimate(_backend: object, script: Path, *, timeout_s: float) -> Any:
        assert timeout_s <= 5
        scripts.append(script.read_text())
        if isinstance(says, Exception):
            raise says
        return says

    monkeypatch.setattr(waiting, "estimate", estimate)
    request = Request(gpus=1, time_s=600.0, account="project_1")
    found = answer(request, [CLUSTERS[name] for name in clusters])
    told = as_the_scheduler_says(found, CLUSTERS["lumi"], None)  # type: ignore[arg-type]
    assert len(scripts) == sum(option.cluster == "lumi" for option in found.options) > 0
    assert all("#SBATCH --gpus-per-node=1" in script for script in scripts)
    return told


def starts(told: Answer) -> set[datetime | None]:
    return {option.expected_start_at for option in told.options}


def test_each_option_of_this_cluster_is_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    assert starts(asked(monkeypatch, SOON, "lumi")) == {SOON}
    assert starts(asked(monkeypatch, SOON, "lumi", "roihu")) == {SOON, None}


def test_what_the_scheduler_refuses_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    no = RefusedError("sbatch says: error:\n  Invalid account")
    told = asked(monkeypatch, no, "lumi", "roihu")
    assert {option.cluster for option in told.options} == {"roihu"}
    refusals = [one for unfit in told.unfit for one in unfit.refusals if one.kind == "scheduler"]
    assert {one.sentence for one in refusals} == {
        "the scheduler would refuse the job; sbatch says: error: Invalid account"
    }
    alone = asked(monkeypatch, no, "lumi")
    text = render_text(
        plan_document(Request(gpus=1), alone, CLUSTERS), width=100, color=False, detail="why"
    )
    assert text.startswith("✗ No partition fits")
    assert "The job fits on" not in text


def test_a_plan_that_lacks_an_account_is_not_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SBATCH_ACCOUNT", raising=False)
    monkeypatch.setattr(waiting, "estimate", lambda *_, **__: pytest.fail("asked"))
    found = answer(Request(gpus=1), [CLUSTERS["lumi"]])
    assert as_the_scheduler_says(found, CLUSTERS["lumi"], None) == found  # type: ignore[arg-type]


def test_a_scheduler_that_is_away_leaves_the_plan_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert starts(asked(monkeypatch, NoAnswerError("away"), "lumi")) == {None}


@pytest.mark.parametrize(
    ("wait", "words"),
    [
        (timedelta(0), "the scheduler estimates that the job would start at once"),
        (timedelta(hours=2, seconds=59), "would start in"),
        (None, ""),
    ],
)
def test_the_wait_in_words(
    monkeypatch: pytest.MonkeyPatch, wait: timedelta | None, words: str
) -> None:
    start = None if wait is None else datetime.now(timezone.utc) + wait
    monkeypatch.setattr(waiting, "estimate", lambda *_, **__: start)
    request = Request(gpus=1, time_s=600.0, account="project_1")
    clusters = {"lumi": CLUSTERS["lumi"]}
    found = answer(request, clusters.values())
    told = as_the_scheduler_says(found, clusters["lumi"], None)  # type: ignore[arg-type]
    text = render_text(plan_document(request, told, clusters), width=100, color=False, detail="why")
    assert words in text
    assert ("the scheduler estimates" in text) == bool(words)
