"""At its present pace, a running program does not finish before the time limit of its job."""

from __future__ import annotations

from teho.explain.rule import Evidence, Findings, ProgramContext, Severity, chosen
from teho.explain.time_left import time_left
from teho.model.missing import Missing
from teho.units import format_duration

RANK = 8
SEVERITY = "warning"
THRESHOLDS = {
    "steps_min_s": chosen(
        300.0, "s", "the first minutes of a program often have a pace of their own"
    ),
    "over_percent": chosen(
        10.0,
        "%",
        "the pace of a program changes by some per cent from hour to hour, so a smaller difference "
        "is not certain",
    ),
    "margin_factor": chosen(1.25, "times", "the next run may be up to a quarter slower"),
}


def judge(context: ProgramContext) -> Findings:
    """Compare the remaining time of a program with the rest of its job's time limit.

    Both the pace of the last minute and the pace of the whole run have to be too slow. The finding
    is only for runs that have not ended.
    """
    limit_s = context.run.limit_s
    if context.run.end is not None or limit_s is None or not context.mains:
        return
    process = context.mains[0].process
    if not process.progress:
        return
    left = time_left(process)
    if isinstance(left, Missing):
        for node in context.summary.nodes:
            if node.name == process.node:
                context.figure(node, "remaining time of the program", left)
        return
    last = process.progress[-1]
    if last.last_s - last.first_s < context.limit("steps_min_s"):
        return
    # The newest rows and the newest notes are written at about the same time.
    at_s = context.summary.elapsed_s - (process.until_s - last.last_s)
    missing_s = at_s + left.least_s - limit_s
    if missing_s <= left.least_s * context.limit("over_percent") / 100:
        return
    whole_s = _whole_limit_s(context, limit_s)
    needed_s = context.limit("margin_factor") * (whole_s + missing_s)
    done = left.total
    yield context.finding(
        Severity.WARNING,
        "At its present pace, the program probably does not finish before the time limit: about "
        f"{format_duration(60 * round(missing_s / 60) or missing_s)} are missing.",
        evidence=(
            Evidence("expected time left", left.least_s, "s"),
            Evidence("time until the limit", max(0.0, limit_s - at_s), "s"),
            Evidence(f"done so far ({done.known_by})", 100 * done.done / done.total, "%"),
        ),
        judged_by=["over_percent", "steps_min_s"],
        action=(
            "If the program can continue from a checkpoint, save a checkpoint before the limit, "
            "and continue in another job. If not, request "
            f"{context.scheduler_advice.time_limit(60 * round(needed_s / 60))} for the next job."
        ),
    )


def _whole_limit_s(context: ProgramContext, limit_s: float) -> float:
    """Return the time limit of the job, which may have begun before the program."""
    limits = (one.allocation.time_limit_s for one in context.run.nodes)
    return max(limit_s, *(one for one in limits if one), 0.0)
