"""Data are read from storage in each epoch, because memory cannot keep them."""

from __future__ import annotations

from collections.abc import Iterator

from teho.explain.program_context import ProgramContext
from teho.explain.rule import STARVED, Mutes, chosen, input_causes_after
from teho.model.finding import Evidence, Finding
from teho.model.missing import Missing, Reason
from teho.units import format_bytes

RANK = 110
SEVERITY = "critical, warning"
THRESHOLDS = {
    "read_times": chosen(
        1.5, "times", "the run read 1.5 times the data that memory could have kept"
    ),
}
MUTES = Mutes(
    (*input_causes_after("input_read_again"), *STARVED), because="the storage limits the speed"
)


def judge(context: ProgramContext) -> Iterator[Finding]:
    """Compare storage reads with the memory limit, for a program that waits for data."""
    waiting = context.waiting()
    node = context.node_of(waiting.main) if waiting else None
    loader = waiting.main.feed.loader if waiting else None
    if waiting is None or node is None or loader is None or loader.epochs < 2:
        return
    total = node.totals.get("job_read_bytes", Missing(Reason.UNRECORDED))
    read = context.figure(node, "job read from storage", total)
    limit = context.figure(node, "memory limit", node.memory_limit_bytes)
    if read is None or limit is None or read < context.limit("read_times") * limit:
        return
    yield context.lost_waiting(
        waiting,
        f" and read {format_bytes(read)} from storage: {format_bytes(limit)} of memory is "
        "too little to keep the data between epochs.",
        evidence=(
            Evidence("read from storage", read, "bytes"),
            Evidence("memory limit", limit, "bytes"),
        ),
        judged_by=["read_times"],
        action=(
            "Request more memory, or make the data smaller: store them in the type that the "
            "program computes with, compressed, or already cut to size."
        ),
        regain_percent=(0.0, waiting.share_percent),
    )
