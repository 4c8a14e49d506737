"""A few batches keep the program waiting: some samples take far longer than others."""

from __future__ import annotations

import math
from collections.abc import Mapping

from teho.explain.causes._watch import Watch, median_place, more_workers, waited
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["KIND", "judge"]

KIND = "input_skewed"

_BURST_PERCENT = 50.0
"""Half of the long waits that workers of equal pace would cause, one in as many as they are."""


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Look at how unevenly long batches are waited for."""
    watch = Watch(KIND, run, summary, thresholds)
    waiting = watch.waiting()
    loader = waiting.main.feed.loader if waiting else None
    if waiting is None or loader is None:
        return []
    count = sum(wait.count for wait in loader.waits.values())
    if not count or count < watch.limit("waits_min"):
        return []
    median = median_place(loader.waits)
    # A place more is twice as long.
    apart = round(math.log2(max(1.0, watch.limit("times_longer"))))
    long = [wait for place, wait in loader.waits.items() if place >= median + apart]
    share = 100 * sum(wait.total_s for wait in long) / waiting.wait_s
    rare = 100 * sum(wait.count for wait in long) / count
    # Workers that are too few for equal batches have them all at once: each time one long wait.
    most_percent = min(watch.limit("rare_percent"), _BURST_PERCENT / max(1, waiting.workers))
    if share < watch.limit("long_waits_percent") or rare > most_percent:
        return []
    further = more_workers(waiting, max(1, waiting.cores - 1), "prefetch_factor=8")
    until = f"; until then let workers load further ahead: {further}"
    lost_percent = waiting.share_percent * share / 100
    return [
        watch.lost(
            f"{waited(waiting)}, most of it for {rare:.2g} % of the batches: some samples take far "
            "longer than others.",
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
