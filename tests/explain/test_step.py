"""Clocks, ends and gaps of a step of several tasks."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explain.scenario_parts import STARTED, NodePart, gpu, scenario, step, task
from teho.explain.step import (
    absent_hosts,
    ending,
    first_failure,
    offset_s,
    rank_at,
    silent_ranks,
    stopped_early,
)
from teho.model.run import Clock, End, RunState


def made(*parts, tasks=(), **given):
    run, summary = scenario(*parts, tasks=tasks, **given)
    return run, summary


@given(st.floats(-7200, 7200), st.floats(-1e5, 1e5), st.floats(0, 1e5))
def test_a_row_is_placed_by_the_run_s_clock(ahead_s, started_s, elapsed_s):
    clock = Clock(ahead_s=ahead_s, uncertainty_s=0.001)
    run, _ = made(NodePart("a"), NodePart("b", clock=clock))
    # The node's own clock shows that much more than the run's at the same instant.
    shown = STARTED + timedelta(seconds=started_s + ahead_s)
    node = msgspec.structs.replace(run.nodes[1], started_at=shown)
    run = msgspec.structs.replace(run, nodes=(run.nodes[0], node))
    assert elapsed_s + offset_s(run, node) == pytest.approx(started_s + elapsed_s, abs=1e-5)
    assert run.moment_s("b", shown) == pytest.approx(started_s, abs=1e-5)
    assert offset_s(run, run.nodes[0]) == 0


def test_without_a_clock_the_node_s_own_counts():
    run, _ = made(NodePart("a"), NodePart("b"))
    assert run.moment_s("b", STARTED + timedelta(seconds=5)) == 5
    assert run.moment_s("nowhere", STARTED + timedelta(seconds=5)) == 5


def test_silent_ranks_by_node():
    parts = (NodePart("a", ranks=range(4)), NodePart("b", ranks=range(4, 7)))
    tasks = [task(rank, "a") for rank in (0, 1, 3)] + [task(4, "b")]
    run, _ = made(*parts, step=step(8, "a", "b"), tasks=tasks)
    assert silent_ranks(run) == {"a": (2,), "b": (5, 6), "": (7,)}


def test_no_rank_is_silent_after_all_have_reported():
    run, _ = made(NodePart("a", ranks=(0, 1)), step=step(2, "a"), tasks=[task(0), task(1)])
    assert silent_ranks(run) == {}


@pytest.mark.parametrize("of_step", [None, step(1, "a")])
def test_one_program_has_no_ranks(of_step):
    run, _ = made(NodePart("a"), step=of_step)
    assert silent_ranks(run) == {}


def test_absent_hosts_with_and_without_a_domain():
    run, _ = made(NodePart("a.cluster.fi"), NodePart("c"), step=step(4, "a", "b", "c.x", "d"))
    assert absent_hosts(run) == ("b", "d")
    run, _ = made(NodePart("a"))
    assert absent_hosts(run) == ()


def test_the_rank_of_a_gpu():
    run, _ = made(NodePart("a", gpus=[gpu()] * 4, ranks=(11, 9, 8, 10)), step=step(4, "a"))
    assert [rank_at(run, "a", place) for place in range(5)] == [8, 9, 10, 11, None]
    assert rank_at(run, "b", 0) is None
    run, _ = made(NodePart("a", gpus=[gpu()] * 4, ranks=(0,)), step=step(1, "a"))
    assert rank_at(run, "a", 0) is None


@pytest.mark.parametrize(
    ("given_end", "words"),
    [
        ({"exit_code": 0}, "exit code 0"),
        ({"exit_code": 137}, "exit code 137"),
        ({"signal": 9}, "by SIGKILL"),
        ({"signal": 63}, "by signal 63"),
    ],
)
def test_endings(given_end, words):
    end = End(at=STARTED, elapsed_s=1, cpu_s=1, peak_process_bytes=1, **given_end)
    assert ending(end) == words


def test_first_failure_goes_by_the_run_s_clock():
    late = Clock(ahead_s=60, uncertainty_s=0.1)
    run, _ = made(
        NodePart("a"),
        NodePart("b", clock=late),
        step=step(3, "a", "b"),
        tasks=[
            task(0, "a"),
            task(1, "a", after_s=100, exit_code=1),
            task(2, "b", after_s=130, exit_code=2),
        ],
    )
    assert first_failure(run).exit_code == 2
    assert first_failure(made(NodePart("a"))[0]) is None


class TestStoppedEarly:
    def found(self, last_s, state=RunState.FINISHED, **given):
        run, summary = made(NodePart("a"), NodePart("b", last_s=last_s), **given)
        return [node.name for node in stopped_early(run, state, summary)]

    # 15 s between two writes, two samples, and 0.2 % of an hour for a row of many.
    @pytest.mark.parametrize(("last_s", "names"), [(3576.0, []), (3575.0, ["b"]), (900.0, ["b"])])
    def test_later_than_writes_explain(self, last_s, names):
        assert self.found(last_s) == names

    @pytest.mark.parametrize(("last_s", "names"), [(3511.0, []), (3509.0, ["b"])])
    def test_while_it_runs_files_may_come_late(self, last_s, names):
        assert self.found(last_s, RunState.RUNNING) == names

    def test_a_recorder_that_came_to_its_end_did_not_stop_early(self):
        run, summary = made(NodePart("a"), NodePart("b", last_s=900.0))
        nodes = (run.nodes[0], msgspec.structs.replace(run.nodes[1], sealed=True))
        run = msgspec.structs.replace(run, nodes=nodes)
        assert stopped_early(run, RunState.FINISHED, summary) == ()

    def test_the_only_node_is_the_run_itself(self):
        run, summary = made(NodePart("a", last_s=900.0))
        assert stopped_early(run, RunState.INTERRUPTED, summary) == ()
