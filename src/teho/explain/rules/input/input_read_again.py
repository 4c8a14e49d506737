"""The data are read from storage again and again: memory does not hold them."""

from __future__ import annotations

from teho.explain.program_context import ProgramContext, waited
from teho.explain.rule import STARVED, Mutes, input_causes_after
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.missing import Missing, Reason
from teho.units import format_bytes

__all__ = ["KIND", "MUTES", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "input_read_again"
RANK = 110
SAYS = "data are read from storage in each epoch, because memory cannot keep them"
SEVERITY = "critical, warning"
THRESHOLDS = {
    "read_times": Threshold(
        1.5, "times", "Teho's own choice: half as much again as could have been kept"
    ),
}
MUTES = Mutes(
    (
        *input_causes_after(KIND),
        *STARVED,
    ),
    because="the storage sets the pace",
)


def judge(context: ProgramContext) -> list[Finding] | Abstention:
    """Look at storage reads beyond what memory may hold, of a program that waits for its data."""
    waiting = context.waiting()
    node = context.node_of(waiting.main) if waiting else None
    loader = waiting.main.feed.loader if waiting else None
    if waiting is None or node is None or loader is None or loader.epochs < 2:
        return []
    read = context.figure(node, "job read from storage", node.totals.get("job_read_bytes", _UNSEEN))
    limit = context.figure(node, "memory limit", node.memory_limit_bytes)
    if read is None or limit is None or read < context.limit("read_times") * limit:
        return context.outcome([])
    return [
        context.lost(
            f"{waited(waiting)}, and read {format_bytes(read)} from storage: memory holds "
            f"{format_bytes(limit)}, too little to keep the data from one epoch to the next.",
            share_percent=waiting.share_percent,
            evidence=(
                Evidence("waiting for data", waiting.share_percent, "%"),
                Evidence("read from storage", read, "bytes"),
                Evidence("memory limit", limit, "bytes"),
            ),
            judged_by=["read_times"],
            action=(
                "Ask for more memory, or make the data smaller: store them in the type that the "
                "program computes with, compressed, or already cut to size."
            ),
            regain_percent=(0.0, waiting.share_percent),
            lines=waiting.main.feed.lines,
        )
    ]


_UNSEEN = Missing(Reason.UNRECORDED)
