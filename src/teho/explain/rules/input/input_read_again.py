"""Data are read from storage in each epoch, because they do not fit in memory."""

from __future__ import annotations

from teho.explain.kinds import STARVED, input_causes_after
from teho.explain.rule import Evidence, Findings, ProgramContext, chosen
from teho.units import format_bytes

RANK = 110
SEVERITY = "critical, warning"
THRESHOLDS = {
    "read_times": chosen(
        1.5,
        "times",
        "a run that reads 1.5 times the amount of data that fits into memory has probably read "
        "the same data again",
    ),
}
MUTES = (*input_causes_after("input_read_again"), *STARVED)
MUTES_BECAUSE = "the storage limits the speed; other changes of the data loader help little"


def judge(context: ProgramContext) -> Findings:
    """Compare storage reads with the memory limit, for a program that waits for data."""
    waiting = context.waiting()
    node = context.node_of(waiting.main) if waiting else None
    if waiting is None or node is None or waiting.loader.epochs < 2:
        return
    read = context.total(node, "job_read_bytes")
    limit = context.figure(node, "memory limit", node.memory_limit_bytes)
    if read is None or limit is None or read < context.limit("read_times") * limit:
        return
    yield context.lost_waiting(
        waiting,
        f" and read {format_bytes(read)} from storage: {format_bytes(limit)} of memory is "
        "too little to keep the data between epochs.",
        evidence=(
            Evidence("data read from storage", read, "bytes"),
            Evidence("memory limit", limit, "bytes"),
        ),
        action=(
            "Request more memory. Or make the data smaller before the job: compress them, cut "
            "the samples to the size that the program uses, or store the numbers in the type that "
            "the program computes with."
        ),
        regain_percent=(0.0, waiting.share_percent),
    )
