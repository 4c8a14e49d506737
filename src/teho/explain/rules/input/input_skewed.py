"""A few batches take far longer to load than the other batches."""

from __future__ import annotations

import math

from teho.explain.kinds import STARVED
from teho.explain.program_context import median_place, worker_call
from teho.explain.rule import Evidence, Findings, ProgramContext, chosen

RANK = 160
SEVERITY = "critical, warning"
THRESHOLDS = {
    "times_longer": chosen(
        8.0, "times", "a wait of 8 times the median wait is too long to be noise"
    ),
    "long_waits_percent": chosen(
        33.0, "%", "above this limit, long waits take at least a third of the waiting time"
    ),
    "rare_percent": chosen(
        20.0,
        "%",
        "if more than a fifth of the batches cause a long wait, long waits are not exceptions",
    ),
    "waits_min": chosen(
        20.0, "batches", "if the run has fewer than 20 batches, one batch may be slow by chance"
    ),
}
MUTES = ("input_too_few_workers", "input_in_main_process", "input_slow", *STARVED)
MUTES_BECAUSE = "the program waits for a few slow batches, not for the other batches"

_BURST_PERCENT = 50.0
"""Half of the long waits that workers of equal speed would cause: one for each worker."""


def judge(context: ProgramContext) -> Findings:
    """Compare the long waits for batches with all waits."""
    waiting = context.waiting()
    if waiting is None:
        return
    waits = waiting.loader.waits
    count = sum(wait.count for wait in waits.values())
    if not count or count < context.limit("waits_min"):
        return
    # Each place is twice as long as the one before it.
    doublings = round(math.log2(max(1.0, context.limit("times_longer"))))
    first_long = median_place(waits) + doublings
    long = [wait for place, wait in waits.items() if place >= first_long]
    share = 100 * sum(wait.total_s for wait in long) / waiting.wait_s
    rare = 100 * sum(wait.count for wait in long) / count
    # Too few workers with equal batches finish at the same time: one long wait each time.
    most_percent = min(context.limit("rare_percent"), _BURST_PERCENT / max(1, waiting.workers))
    if share < context.limit("long_waits_percent") or rare > most_percent:
        return
    further = worker_call(waiting, max(1, waiting.cores - 1), prefetch_factor=8)
    until = (
        ". Until these samples are prepared, let the workers load more batches in advance: "
        f"{further}"
    )
    lost_percent = waiting.share_percent * share / 100
    yield context.lost_waiting(
        waiting,
        f". A few batches ({rare:.2g} %) caused {share:.0f} % of this waiting: some samples take "
        "far longer to load than others.",
        evidence=(
            Evidence("share of the waiting time spent on long waits", share, "%"),
            Evidence("share of the batches with a long wait", rare, "%"),
        ),
        action=(
            "Find the samples that take long to load, and prepare them before the job"
            f"{until if 'num_workers' in waiting.settings else ''}."
        ),
        regain_percent=(lost_percent / 2, lost_percent),
    )
