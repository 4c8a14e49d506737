"""The program loads its data itself, without workers."""

from __future__ import annotations

from teho.explain.kinds import STARVED
from teho.explain.program_context import slow_loading, worker_call
from teho.explain.rule import Evidence, Findings, ProgramContext, Threshold

RANK = 190
SEVERITY = "critical, warning"
THRESHOLDS: dict[str, Threshold] = {}
MUTES = ("input_slow", "serial_program", "cores_unused", *STARVED)
MUTES_BECAUSE = "this finding says what the program waits for, and how to use the idle cores"


def judge(context: ProgramContext) -> Findings:
    """Find a loader without workers for which the program waits."""
    waiting = context.waiting()
    if waiting is None or waiting.settings.get("num_workers") != 0:
        return
    workers = context.best_workers(waiting)
    add = worker_call(waiting, workers, persistent_workers=True)
    mostly, faster = slow_loading(waiting)
    yield context.lost_waiting(
        waiting,
        f": the data loader has no workers.{mostly}",
        evidence=(Evidence("workers", 0.0), Evidence("cores", float(waiting.cores), "cores")),
        action=f"Add workers: {add}{context.or_keep_data(waiting.main)}.{faster}",
        regain_percent=context.by_workers(waiting, workers),
    )
