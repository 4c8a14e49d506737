"""The rule about runs that are too short to judge."""

from __future__ import annotations

import pytest

from explain import scenarios
from explain.scenario_parts import (
    NodePart,
    figures,
    found,
    judged,
    scenario,
)
from teho.explain.rules.job import job_too_short
from teho.model.finding import Severity


class TestJobTooShort:
    def test_twenty_seconds(self):
        finding = found(job_too_short, scenarios.short_job())
        assert finding.severity is Severity.REMARK
        assert finding.sentence == (
            "The program ran for 20.0 s. This is not enough to judge how well the program used its "
            "resources."
        )
        assert figures(finding) == {"wall time": 20.0, "samples": 20.0}
        assert "instead of one `sbatch` for each run" in finding.action

    @pytest.mark.parametrize(("elapsed_s", "count"), [(59.99, 1), (60.0, 0), (60.01, 0)])
    def test_threshold_of_time(self, elapsed_s, count):
        assert len(judged(job_too_short, scenario(NodePart(), elapsed_s=elapsed_s))) == count

    @pytest.mark.parametrize(("period_s", "count"), [(401.0, 1), (360.0, 0), (300.0, 0)])
    def test_threshold_of_samples(self, period_s, count):
        assert len(judged(job_too_short, scenario(NodePart(), period_s=period_s))) == count

    def test_too_few_samples_ask_for_more(self):
        finding = found(job_too_short, scenario(NodePart(), period_s=600.0))
        assert finding.sentence.startswith("Only 6 samples were taken in 1 h.")
        assert "`teho run --every 1s -- CMD`" in finding.action

    def test_nothing_recorded(self):
        assert figures(found(job_too_short, scenarios.nothing_recorded()))["samples"] == 0.0

    @pytest.mark.parametrize(
        ("scheduler", "text"), [("grid_engine", "instead of one `qsub`"), (None, "into one job.")]
    )
    def test_other_schedulers(self, scheduler, text):
        made = scenario(NodePart(scheduler=scheduler), elapsed_s=5.0)
        assert text in found(job_too_short, made).action
