"""The pace and the cost of a replay are those that the report had at this moment."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from explain.scenario_parts import NodePart, scenario
from teho.explain.bill import bill_of
from teho.model.allocation import Allocation
from teho.model.document import Fact
from teho.model.missing import Missing
from teho.model.plan import Cost
from teho.model.program import Feed, MainProcess, Program
from teho.model.run import Run
from teho.model.summary import Summary
from teho.model.watched import Progress, WatchedProcess
from teho.show.top.past import facts_at
from teho.units import GIB

BOOT_S = 5000.0
"""Monotonic time of the node at the start of the run."""
JOB = {"scheduler": "slurm", "job_id": "4711", "cluster": "puhti", "partition": "small",
       "gpus_held": 0, "cores_asked": 10, "memory_limit_bytes": 80 * GIB,
       "memory_limit_source": "cgroup"}  # fmt: skip


@pytest.fixture(autouse=True)
def _shipped_catalogue(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("TEHO_CLUSTERS", raising=False)


def program() -> Program:
    """Return a program with one step per second, and after 600 s two per second."""
    counts = [(at_s, at_s + max(0, at_s - 600)) for at_s in range(10, 3601, 10)]
    progress = tuple(
        Progress(steps=count, first_s=BOOT_S + 1.0, last_s=BOOT_S + at_s) for at_s, count in counts
    )
    process = WatchedProcess(node="r01g01", pid=1, python="3.11", began_s=BOOT_S,
                             until_s=BOOT_S + 3600.0, stacks=(), progress=progress)  # fmt: skip
    feed = Feed(loader=None, main_s={}, workers_s={}, workers=0, lines=())
    return Program(mains=(MainProcess(process=process, spent=(), feed=feed),))


def given(started_s: float | None = BOOT_S, **job: object) -> tuple[Run, Summary]:
    allocation = Allocation(**{**JOB, **job})
    run, summary = scenario(NodePart(cores=10, allocation=allocation))
    nodes = tuple(msgspec.structs.replace(node, started_s=started_s) for node in run.nodes)
    return (
        msgspec.structs.replace(run, nodes=nodes),
        msgspec.structs.replace(summary, program=program()),
    )


def facts(at_s: float, run: Run, summary: Summary) -> dict[str, Fact]:
    return {fact.key: fact for fact in facts_at(run, summary, at_s)}


@pytest.mark.parametrize(
    ("at_s", "whole", "recent"),
    [(30.0, 1.0, None), (500.0, 1.0, 1.0), (1200.0, 1.5, 2.0), (3600.0, 1.83, 2.0)],
)
def test_the_pace_at_a_moment(at_s: float, whole: float, recent: float | None) -> None:
    found = facts(at_s, *given())
    assert found["steps_per_s"].value == pytest.approx(whole, rel=0.01)
    if recent is None:
        assert "steps_per_s_now" not in found
    else:
        assert found["steps_per_s_now"].value == pytest.approx(recent, rel=0.01)


def test_there_is_no_pace_before_the_first_steps_and_without_the_clock() -> None:
    assert "steps_per_s" not in facts(5.0, *given())
    assert "steps_per_s" not in facts(500.0, *given(started_s=None))


def test_the_cost_at_a_moment_is_that_of_a_run_that_ended_then() -> None:
    run, summary = given(time_limit_s=7200.0)
    whole = bill_of(run, summary)
    assert whole is not None
    assert isinstance(whole.cost, Cost)
    found = facts(900.0, run, summary)
    assert found["cost"].value == pytest.approx(whole.cost.amount / 4)
    assert found["cost_at_limit"].value == pytest.approx(2 * whole.cost.amount)
    assert isinstance(found["cost_unused"].value, Missing)
