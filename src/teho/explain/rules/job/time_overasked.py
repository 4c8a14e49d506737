"""The job asked for much more time than it took."""

from __future__ import annotations

import math

from teho.explain.context import RuleContext, allocation_of
from teho.model.finding import Abstention, Evidence, Finding, Severity, Threshold
from teho.model.missing import Missing, Reason
from teho.model.run import End, Run
from teho.units import format_clock, format_duration

__all__ = ["KIND", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "time_overasked"
RANK = 500
SAYS = "a completed job requested far more time than it took"
SEVERITY = "remark"
THRESHOLDS = {
    "used_min_s": Threshold(
        900.0, "s", "Jobstats: of completed jobs that ran for more than 15 minutes"
    ),
    "used_percent": Threshold(60.0, "%", "Jobstats: less than 60 % of the time asked for"),
    "margin_factor": Threshold(
        1.25, "times", "Teho's own choice: the next run may be slower by a quarter"
    ),
}


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Compare the time that a completed job took with what it may take."""
    node, end = next(iter(context.summary.nodes), None), context.run.end
    # Of a job that was recorded from outside nobody saw the beginning.
    if node is None or end is None or end.exit_code != 0 or end.job_state:
        return []
    used_s = _used_s(context.run, end)
    if not allocation_of(context.run, node.name).scheduler or used_s <= context.limit("used_min_s"):
        return []
    asked_s = context.figure(node, "time limit", _asked_s(context.run))
    if not asked_s or 100 * used_s / asked_s >= context.limit("used_percent"):
        return context.outcome([])
    factor = context.limit("margin_factor")
    needed_s = 60 * math.ceil(factor * used_s / 60)
    return [
        context.finding(
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
