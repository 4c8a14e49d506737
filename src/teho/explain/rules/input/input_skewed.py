"""A few batches keep the program waiting: some samples take far longer than others."""

from __future__ import annotations

import math

from teho.explain.program_context import ProgramContext, median_place, more_workers, waited
from teho.explain.rule import STARVED, Mutes
from teho.model.finding import Abstention, Evidence, Finding, Threshold

__all__ = ["KIND", "MUTES", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "input_skewed"
RANK = 160
SAYS = "a few batches take far longer to load than the others"
SEVERITY = "critical, warning"
THRESHOLDS = {
    "times_longer": Threshold(
        8.0, "times", "Teho's own choice: three doublings above the median, apart from any jitter"
    ),
    "long_waits_percent": Threshold(33.0, "%", "Teho's own choice: a third of the waiting"),
    "rare_percent": Threshold(
        20.0, "%", "Teho's own choice: more than a fifth of the batches are not an exception"
    ),
    "waits_min": Threshold(
        20.0, "batches", "Teho's own choice: of fewer, one slow batch is chance"
    ),
}
MUTES = Mutes(
    (
        "input_too_few_workers",
        "input_in_main_process",
        "input_slow",
        *STARVED,
    ),
    because="the other batches are there in time",
)

_BURST_PERCENT = 50.0
"""Half of the long waits that workers of equal pace would cause, one in as many as they are."""


def judge(context: ProgramContext) -> list[Finding] | Abstention:
    """Look at how unevenly long batches are waited for."""
    waiting = context.waiting()
    loader = waiting.main.feed.loader if waiting else None
    if waiting is None or loader is None:
        return []
    count = sum(wait.count for wait in loader.waits.values())
    if not count or count < context.limit("waits_min"):
        return []
    median = median_place(loader.waits)
    # A place more is twice as long.
    apart = round(math.log2(max(1.0, context.limit("times_longer"))))
    long = [wait for place, wait in loader.waits.items() if place >= median + apart]
    share = 100 * sum(wait.total_s for wait in long) / waiting.wait_s
    rare = 100 * sum(wait.count for wait in long) / count
    # Workers that are too few for equal batches have them all at once: each time one long wait.
    most_percent = min(context.limit("rare_percent"), _BURST_PERCENT / max(1, waiting.workers))
    if share < context.limit("long_waits_percent") or rare > most_percent:
        return []
    further = more_workers(waiting, max(1, waiting.cores - 1), "prefetch_factor=8")
    until = f"; until then let workers load further ahead: {further}"
    lost_percent = waiting.share_percent * share / 100
    return [
        context.lost(
            f"{waited(waiting)}, {share:.0f} % of that for {rare:.2g} % of the batches: some "
            "samples take far longer than others.",
            share_percent=waiting.share_percent,
            evidence=(
                Evidence("waiting for data", waiting.share_percent, "%"),
                Evidence("of that, long waits", share, "%"),
                Evidence("long waits, of all batches", rare, "%"),
            ),
            judged_by=["times_longer", "long_waits_percent", "rare_percent", "waits_min"],
            action=(
                "Find the samples that take long, and prepare them before the job"
                f"{until if 'num_workers' in waiting.settings else ''}."
            ),
            regain_percent=(lost_percent / 2, lost_percent),
            lines=waiting.main.feed.lines,
        )
    ]
