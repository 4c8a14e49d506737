"""The workers that load the data are all at work, and there are cores for more."""

from __future__ import annotations

from teho.explain.program_context import ProgramContext, more_workers, waited
from teho.explain.rule import STARVED, Mutes
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.program import Part

__all__ = ["KIND", "MUTES", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "input_too_few_workers"
RANK = 180
SAYS = "the workers work all the time, and there are cores for more"
SEVERITY = "critical, warning"
THRESHOLDS = {
    "busy_percent": Threshold(
        70.0,
        "%",
        "Teho's own choice: workers that rest for a third of the time are not what is lacking",
    ),
}
MUTES = Mutes(
    (
        "input_slow",
        "serial_program",
        "cores_unused",
        *STARVED,
    ),
    because="it says what to change, and what the cores are for",
)


def judge(context: ProgramContext) -> list[Finding] | Abstention:
    """Look at workers that work most of the time and are waited for."""
    waiting = context.waiting()
    if waiting is None or not 0 < waiting.workers < waiting.cores:
        return []
    workers = context.best_workers(waiting)
    feed = waiting.main.feed
    busy = 100 * waiting.work_s / (waiting.work_s + feed.workers_s.get(Part.IDLE, 0.0) or 1.0)
    if workers <= waiting.workers or busy < context.limit("busy_percent"):
        return []
    return [
        context.lost(
            f"{waited(waiting)}: its {waiting.workers} worker"
            f"{'s' if waiting.workers > 1 else ''} cannot load them faster.",
            share_percent=waiting.share_percent,
            evidence=(
                Evidence("waiting for data", waiting.share_percent, "%"),
                Evidence("workers at work", busy, "%"),
                Evidence("workers", float(waiting.workers)),
                Evidence("cores", float(waiting.cores), "cores"),
            ),
            judged_by=["busy_percent"],
            action=f"Start more: {more_workers(waiting, workers)}.",
            regain_percent=context.by_workers(waiting, workers),
            lines=feed.lines,
        )
    ]
