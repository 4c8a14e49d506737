"""The rule about runs that are too short to judge."""

from __future__ import annotations

import pytest

from explain import scenarios
from explain.scenario_parts import (
    NodePart,
    figures,
    found,
    gpu,
    judged,
    scenario,
)
from teho.explain.judge import judge_all
from teho.explain.policy import load_policy
from teho.explain.rules.job import job_too_short
from teho.model.finding import Certainty, Severity


class TestJobTooShort:
    def test_nineteen_seconds(self):
        finding = found(job_too_short, scenarios.short_job())
        assert finding.severity is Severity.REMARK
        assert finding.sentence == (
            "The program ran for 19.0 s. This is not enough to judge how well the program used its "
            "resources."
        )
        assert figures(finding) == {"run time": 19.0, "number of samples": 19.0}
        assert "instead of one `sbatch` for each run" in finding.action

    @pytest.mark.parametrize(("elapsed_s", "count"), [(59.99, 1), (60.0, 0), (60.01, 0)])
    def test_threshold_of_time(self, elapsed_s, count):
        assert len(judged(job_too_short, scenario(NodePart(), elapsed_s=elapsed_s))) == count

    @pytest.mark.parametrize(("period_s", "count"), [(401.0, 1), (360.0, 0), (300.0, 0)])
    def test_threshold_of_samples(self, period_s, count):
        assert len(judged(job_too_short, scenario(NodePart(), period_s=period_s))) == count

    def test_too_few_samples_ask_for_more(self):
        finding = found(job_too_short, scenario(NodePart(), period_s=600.0))
        assert finding.sentence.startswith(
            "In 1 h, the use of cores and memory was measured only 6 times."
        )
        assert "`teho run --every 1s -- CMD`" in finding.action

    @pytest.mark.parametrize(
        ("elapsed_s", "period_s", "is_said"),
        [(20.0, 1.0, True), (19.9, 1.0, False), (59.0, 1.0, True), (59.0, 7.0, False)],
    )
    def test_from_20_s_on_gpus_are_judged_with_less_certainty(self, elapsed_s, period_s, is_said):
        gpus = [gpu(95.0), gpu(95.0), gpu(95.0), gpu(3.0)]
        part = NodePart(gpus=gpus, cores_used=1.0)
        findings, _ = judge_all(
            *scenario(part, elapsed_s=elapsed_s, period_s=period_s), load_policy()
        )
        certainties = {one.kind: one.certainty for one in findings}
        assert ("gpu_one_idle" in certainties) is is_said
        assert certainties.get("gpu_one_idle", Certainty.POSSIBLE) is Certainty.POSSIBLE
        assert "serial_program" not in certainties
        assert ("findings about GPUs may be wrong" in findings[-1].sentence) is is_said

    def test_nothing_recorded(self):
        finding = found(job_too_short, scenarios.nothing_recorded())
        assert figures(finding)["number of samples"] == 0.0

    @pytest.mark.parametrize(
        ("scheduler", "text"), [("grid_engine", "instead of one `qsub`"), (None, "into one job.")]
    )
    def test_other_schedulers(self, scheduler, text):
        made = scenario(NodePart(scheduler=scheduler), elapsed_s=5.0)
        assert text in found(job_too_short, made).action
