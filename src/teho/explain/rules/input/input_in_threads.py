"""Grain reads the data in threads of one Python process, and the program waits for the data."""

from __future__ import annotations

from teho.explain.kinds import STARVED, input_causes_after
from teho.explain.program_context import worker_call
from teho.explain.rule import Evidence, Findings, ProgramContext, Threshold, chosen
from teho.model.program import Part

RANK = 175
SEVERITY = "critical, warning"
THRESHOLDS = {
    "awaiting_percent": chosen(
        50.0,
        "%",
        "below this limit, the main thread itself does most of the loading, and the loader's "
        "threads only read",
    ),
    "cores_min": Threshold(
        3.0,
        "cores",
        "docs/faults.md: on two cores, a pipeline was slower with workers than without workers, "
        "because the workers compete with the program for the cores",
    ),
}
MUTES = (
    "too_many_threads",
    "serial_program",
    "cores_unused",
    *input_causes_after("input_in_threads"),
    *STARVED,
)
MUTES_BECAUSE = "this finding says which threads compete, and how to use all cores"


def judge(context: ProgramContext) -> Findings:
    """Find a pipeline of Grain without workers whose threads do the work."""
    waiting = context.waiting()
    threads = waiting.settings.get("num_threads") if waiting else None
    if waiting is None or not threads or waiting.workers:
        return
    if waiting.cores < context.limit("cores_min"):
        return
    awaiting = waiting.worked_percent(Part.AWAITING)
    if awaiting < context.limit("awaiting_percent"):
        return
    yield context.lost_waiting(
        waiting,
        f": the loader's {threads} threads share one Python process, and only one thread at a "
        "time can run Python code.",
        evidence=(
            Evidence(
                "share of the waiting time in which the program waited for the loader's threads",
                awaiting,
                "%",
            ),
            Evidence("threads of the loader", float(threads)),
            Evidence("workers", 0.0),
            Evidence("cores", float(waiting.cores), "cores"),
        ),
        action=f"Add workers, which are processes: {worker_call(waiting, waiting.cores)}.",
        # It is not known how much of the work is Python code.
        regain_percent=(0.0, waiting.share_percent),
    )
