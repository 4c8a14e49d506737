"""A completed job requested far more time than it used."""

from __future__ import annotations

import math

from teho.explain.rule import Evidence, Findings, RuleContext, Severity, Threshold, chosen
from teho.model.missing import Missing, Reason
from teho.model.run import End, Run
from teho.units import format_duration

RANK = 500
SEVERITY = "remark"
THRESHOLDS = {
    "used_min_s": Threshold(
        900.0,
        "s",
        "Jobstats, a job report tool, checks the time limit only of completed jobs that ran "
        "for more than 15 minutes",
    ),
    "used_percent": Threshold(
        60.0,
        "%",
        "Jobstats, a job report tool, reports a job that used less than 60 % of the requested time",
    ),
    "margin_factor": chosen(1.25, "times", "the next run may be up to a quarter slower"),
}


def judge(context: RuleContext) -> Findings:
    """Compare the time that a completed job took with its time limit."""
    node, end = next(iter(context.summary.nodes), None), context.run.end
    # The beginning of a job that was recorded from outside is not known.
    if node is None or end is None or end.exit_code != 0 or end.job_state:
        return
    used_s = _used_s(context.run, end)
    if not context.run.allocation(node.name).scheduler or used_s <= context.limit("used_min_s"):
        return
    limits = (one.allocation.time_limit_s for one in context.run.nodes)
    known = next((limit_s for limit_s in limits if limit_s), None)
    limit_s = context.figure(node, "time limit", known or Missing(Reason.ABSENT, "no limit known"))
    if not limit_s or 100 * used_s / limit_s >= context.limit("used_percent"):
        return
    factor = context.limit("margin_factor")
    needed_s = 60 * math.ceil(factor * used_s / 60)
    yield context.finding(
        Severity.REMARK,
        f"The job took {format_duration(used_s)} of the {format_duration(limit_s)} that it "
        "requested.",
        evidence=(
            Evidence("time used", used_s, "s"),
            Evidence("time requested", limit_s, "s"),
            Evidence("share of the requested time that the job used", 100 * used_s / limit_s, "%"),
        ),
        action=(
            "If the job has no work after this program, request "
            f"{context.scheduler_advice.time_limit(needed_s)}, "
            f"which is {factor:g} times the time used. Short jobs start sooner."
        ),
    )


def _used_s(run: Run, end: End) -> float:
    """Return the time from the start of the job to the end of the run; at least the run's time."""
    start_s = run.number("SLURM_JOB_START_TIME")
    return max(end.elapsed_s, end.at.timestamp() - start_s if start_s else 0.0)
