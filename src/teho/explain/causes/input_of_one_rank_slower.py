"""One rank waits for its data, and all others wait for it."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from teho.explain.causes._watch import Watch
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["KIND", "judge"]

KIND = "input_of_one_rank_slower"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Compare how long the ranks waited for their data."""
    watch = Watch(KIND, run, summary, thresholds)
    ranks = [
        main for main in watch.mains if main.process.wall_s >= watch.mains[0].process.wall_s / 2
    ]
    known = {(main.library.get("world_size"), main.library.get("rank")) for main in ranks}
    size = ranks[0].library.get("world_size") if ranks else None
    if len(ranks) < 2 or not isinstance(size, int) or size < len(ranks):
        return []
    # Programs beside each other, or one after the other, do not wait for each other.
    if len(known) < len(ranks) or {one for one, _ in known} != {size}:
        return []
    shares = [100 * main.feed.wait_s / main.process.wall_s for main in ranks]
    worst = max(range(len(ranks)), key=lambda index: shares[index])
    slow, median = ranks[worst], statistics.median_low(shares)
    apart = shares[worst] - median
    if apart < watch.limit("apart_percent") or not watch.is_loss(slow.feed.wait_s, slow):
        return []
    return [
        watch.lost(
            f"Rank {slow.library.get('rank')} on {slow.process.node} waited for its data for "
            f"{shares[worst]:.0f} % of the time, and the others, which waited for {median:.0f} %, "
            "for it.",
            share_percent=apart,
            evidence=(
                Evidence("waiting for data, slowest rank", shares[worst], "%"),
                Evidence("waiting for data, median rank", median, "%"),
                Evidence("ranks", float(len(ranks))),
            ),
            judged_by=["apart_percent"],
            action=(
                "Look at what this rank alone does: its part of the data, its node's disk, work in "
                "`if rank == 0:`; give all ranks equal parts with `DistributedSampler`."
            ),
            regain_percent=(apart / 2, apart),
            lines=slow.feed.lines,
        )
    ]
