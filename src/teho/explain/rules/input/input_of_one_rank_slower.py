"""One rank waited for its data, and the other ranks waited for this rank."""

from __future__ import annotations

import statistics

from teho.explain.kinds import INPUT_CAUSES, STARVED, UNEVEN
from teho.explain.rule import Evidence, Findings, ProgramContext, Threshold

RANK = 90
SEVERITY = "critical, warning"
THRESHOLDS = {
    "apart_percent": Threshold(
        10.0,
        "%",
        "TraceML, a profiler for training, warns if one rank is slower than the other ranks by "
        "10 % of the step time",
    ),
}
MUTES = (*INPUT_CAUSES, *STARVED, *UNEVEN)
MUTES_BECAUSE = "this finding says what all ranks wait for: the data of one rank"


def judge(context: ProgramContext) -> Findings:
    """Compare how long the ranks waited for their data."""
    ranks = [
        main for main in context.mains if main.process.wall_s >= context.mains[0].process.wall_s / 2
    ]
    known = {(main.library.get("world_size"), main.library.get("rank")) for main in ranks}
    size = ranks[0].library.get("world_size") if ranks else None
    if len(ranks) < 2 or not isinstance(size, int) or size < len(ranks):
        return
    # Separate programs on a node do not wait for each other.
    if len(known) < len(ranks) or {one for one, _ in known} != {size}:
        return
    shares = [100 * main.feed.wait_s / main.process.wall_s for main in ranks]
    worst = max(range(len(ranks)), key=lambda index: shares[index])
    slow, median = ranks[worst], statistics.median_low(shares)
    difference = shares[worst] - median
    if difference < context.limit("apart_percent") or not context.is_loss(slow.feed.wait_s, slow):
        return
    yield context.lost(
        f"Rank {slow.library.get('rank')} on {slow.process.node} delayed the other ranks: this "
        f"rank waited for data {shares[worst]:.0f} % of the time, and the other ranks waited only "
        f"{median:.0f} %.",
        share_percent=difference,
        evidence=(
            Evidence("time that the slowest rank waited for data", shares[worst], "%"),
            Evidence("time that the other ranks waited for data (median)", median, "%"),
            Evidence("ranks", float(len(ranks))),
        ),
        action=(
            "Check what is different for this rank: the part of the data, the node's "
            "disk, or extra work (`if rank == 0:`). With `DistributedSampler`, all ranks get equal "
            "parts of the data."
        ),
        regain_percent=(difference / 2, difference),
        lines=slow.feed.lines,
    )
