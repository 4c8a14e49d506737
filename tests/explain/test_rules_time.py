"""The rule about time asked for, on both sides of its thresholds."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from explain import scenarios
from explain.scenario_parts import (
    STARTED,
    NodePart,
    figures,
    found,
    gpu,
    judged,
    scenario,
    step,
    task,
)
from teho.explain.rules.job import time_overasked
from teho.model.finding import Abstention, Severity


def made(elapsed_s=3600.0, limit_s=36_000.0, environment=None, **end):
    run, summary = scenario(
        NodePart(time_limit_s=limit_s), elapsed_s=elapsed_s, environment=environment
    )
    return msgspec.structs.replace(run, end=msgspec.structs.replace(run.end, **end)), summary


class TestTimeOverasked:
    def test_the_number_is_what_it_took_and_a_quarter(self):
        finding = found(time_overasked, scenarios.time_overasked())
        assert finding.sentence == "The job took 1 h of the 8 h that it requested."
        assert finding.severity is Severity.REMARK
        assert figures(finding)["share of the requested time that the job used"] == 12.5
        assert "request `--time=01:15:00`, which is 1.25 times" in finding.action

    def test_the_option_is_the_schedulers(self):
        def action(scheduler):
            run, summary = made(901.0)
            (node,) = run.nodes
            allocation = msgspec.structs.replace(node.allocation, scheduler=scheduler)
            node = msgspec.structs.replace(node, allocation=allocation)
            return found(
                time_overasked, (msgspec.structs.replace(run, nodes=(node,)), summary)
            ).action

        assert "request `-l h_rt=00:19:00`" in action("grid_engine")
        assert "request a time limit of 00:19:00" in action("local")

    def test_whole_minutes_are_asked_for(self):
        assert "`--time=00:19:00`" in found(time_overasked, made(901.0)).action

    @pytest.mark.parametrize(("elapsed_s", "count"), [(899.0, 0), (900.0, 0), (901.0, 1)])
    def test_threshold_of_the_time(self, elapsed_s, count):
        assert len(judged(time_overasked, made(elapsed_s))) == count

    @pytest.mark.parametrize(("percent", "count"), [(59.99, 1), (60.0, 0), (100.1, 0)])
    def test_threshold_of_the_share(self, percent, count):
        assert len(judged(time_overasked, made(360 * percent))) == count

    @pytest.mark.parametrize(
        "end",
        [{"exit_code": 1}, {"exit_code": None, "signal": 15}, {"job_state": "completed"}],
    )
    def test_only_what_completed_and_was_seen_whole(self, end):
        assert judged(time_overasked, made(**end)) == []

    def test_while_it_runs_the_time_is_unknown(self):
        run, summary = made()
        running = msgspec.structs.replace(run, end=None)
        assert judged(time_overasked, (running, summary)) == []

    @pytest.mark.parametrize(("ago_s", "count"), [(3600, 1), (21_590, 1), (21_610, 0)])
    def test_what_came_before_in_the_job_counts(self, ago_s, count):
        start = STARTED + timedelta(seconds=3600 - ago_s)
        told = {"SLURM_JOB_START_TIME": f"{start.timestamp():.0f}"}
        verdict = judged(time_overasked, made(environment=told))
        assert len(verdict) == count
        if verdict:
            assert figures(verdict[0])["time used"] == ago_s

    def test_all_tasks_of_a_step(self):
        parts = [NodePart(name, time_limit_s=36_000.0) for name in ("r01c01", "r01c02")]
        ends = [task(0, "r01c01"), task(1, "r01c02")]
        hosts = step(2, "r01c01", "r01c02")
        assert len(judged(time_overasked, scenario(*parts, step=hosts, tasks=ends))) == 1
        ends[1] = task(1, "r01c02", exit_code=1)
        assert judged(time_overasked, scenario(*parts, step=hosts, tasks=ends)) == []

    def test_with_gpus_too(self):
        part = NodePart(gpus=[gpu()], time_limit_s=36_000.0)
        assert len(judged(time_overasked, scenario(part))) == 1

    def test_outside_a_job_it_is_no_question(self):
        assert judged(time_overasked, scenario(NodePart(scheduler=None))) == []

    def test_abstains_if_the_limit_is_not_known(self):
        verdict = judged(time_overasked, made(limit_s=None))
        assert isinstance(verdict, Abstention)
        assert verdict.lacked == "time limit of r01g01: no limit known"
        assert judged(time_overasked, made(600.0, limit_s=None)) == []
