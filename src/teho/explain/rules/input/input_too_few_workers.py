"""The workers work all the time, and there are cores for more workers."""

from __future__ import annotations

from teho.explain.kinds import STARVED
from teho.explain.program_context import slow_loading, worker_call
from teho.explain.rule import Evidence, Findings, ProgramContext, chosen
from teho.model.program import Part

RANK = 180
SEVERITY = "critical, warning"
THRESHOLDS = {
    "busy_percent": chosen(
        70.0, "%", "if the workers are idle for about a third of the time, more workers do not help"
    ),
}
MUTES = ("input_slow", "serial_program", "cores_unused", *STARVED)
MUTES_BECAUSE = "this finding says what the program waits for, and how to use the idle cores"


def judge(context: ProgramContext) -> Findings:
    """Find workers that are busy most of the time and for which the program waits."""
    waiting = context.waiting()
    if waiting is None or not 0 < waiting.workers < waiting.cores:
        return
    workers = context.best_workers(waiting)
    idle_s = waiting.main.feed.workers_s.get(Part.IDLE, 0.0)
    busy = 100 * waiting.work_s / (waiting.work_s + idle_s or 1.0)
    if workers <= waiting.workers or busy < context.limit("busy_percent"):
        return
    mostly, faster = slow_loading(waiting)
    yield context.lost_waiting(
        waiting,
        f": {waiting.workers} worker{'s' if waiting.workers > 1 else ''} cannot load the data fast "
        f"enough.{mostly}",
        evidence=(
            Evidence("share of the time in which the workers were busy", busy, "%"),
            Evidence("workers", float(waiting.workers)),
            Evidence("cores", float(waiting.cores), "cores"),
        ),
        action=f"Start more workers: {worker_call(waiting, workers)}.{faster}",
        regain_percent=context.by_workers(waiting, workers),
    )
