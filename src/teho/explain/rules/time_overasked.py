"""The job asked for much more time than it took."""

from __future__ import annotations

import math
from collections.abc import Mapping

from teho.explain.rules._look import Look, allocation_of
from teho.model.finding import Abstention, Evidence, Finding, Severity, Threshold
from teho.model.missing import Missing, Reason
from teho.model.run import End, Run
from teho.model.summary import Summary
from teho.units import format_clock, format_duration

__all__ = ["KIND", "judge"]

KIND = "time_overasked"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Compare the time that a completed job took with what it may take."""
    look = Look(KIND, run, summary, thresholds)
    node, end = next(iter(summary.nodes), None), run.end
    # Of a job that was recorded from outside nobody saw the beginning.
    if node is None or end is None or end.exit_code != 0 or end.job_state:
        return []
    used_s = _used_s(run, end)
    if not allocation_of(run, node.name).scheduler or used_s <= look.limit("used_min_s"):
        return []
    asked_s = look.figure(node, "time limit", _asked_s(run))
    if not asked_s or 100 * used_s / asked_s >= look.limit("used_percent"):
        return look.outcome([])
    factor = look.limit("margin_factor")
    needed_s = 60 * math.ceil(factor * used_s / 60)
    return [
        look.finding(
            Severity.REMARK,
            f"The job took {format_duration(used_s)} of the {format_duration(asked_s)} that it "
            "asked for.",
            evidence=(
                Evidence("time used", used_s, "s"),
                Evidence("time asked for", asked_s, "s"),
                Evidence("time used of asked", 100 * used_s / asked_s, "%"),
            ),
            judged_by=["used_min_s", "used_percent", "margin_factor"],
            action=(
                f"If nothing comes after this in the job, ask for `--time={format_clock(needed_s)}`"
                f": {factor:g} times what it took. The scheduler finds room for short jobs sooner."
            ),
        )
    ]


def _used_s(run: Run, end: End) -> float:
    """Return how long the job had been there when the run ended; what the run took, at least."""
    start = run.environment.get("SLURM_JOB_START_TIME", "")
    before_s = end.at.timestamp() - int(start) if start.isdecimal() else 0.0
    return max(end.elapsed_s, before_s)


def _asked_s(run: Run) -> float | Missing:
    told = (node.allocation.time_limit_s for node in run.nodes)
    return next((limit_s for limit_s in told if limit_s), Missing(Reason.ABSENT, "no limit known"))
