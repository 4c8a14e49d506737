"""The report on a job that Teho did not record, from what the accounting knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from teho.config.settings import Settings
from teho.explain.judge import judge_all
from teho.explain.policy import policy_of
from teho.jobs.as_run import as_run
from teho.model.accounted import AccountedJob
from teho.model.finding import Abstention, Finding
from teho.show.build.accounted import accounted_report

if TYPE_CHECKING:
    from teho.model.document import Report

__all__ = ["report_on"]


def report_on(
    runs: Sequence[AccountedJob], settings: Settings, *, is_judged: bool = True
) -> Report:
    """Judge the last run of a job, and lay out its report.

    Args:
        runs: all runs of the job, in their order; a job has several if it was queued again.
        settings: the user's settings, for example for the thresholds.
        is_judged: whether the rules judge it; `seff` has no findings, and arrays have many tasks.
    """
    policy = policy_of(settings)
    last = as_run(runs[-1])
    findings: tuple[Finding, ...] = ()
    abstentions: tuple[Abstention, ...] = ()
    # Before its end, the accounting does not have what a job uses.
    if is_judged and last.job.state.ended:
        findings, abstentions = judge_all(last.run, last.summary, policy)
    return accounted_report(last, runs, findings=findings, abstentions=abstentions, policy=policy)
