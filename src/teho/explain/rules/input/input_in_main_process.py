"""The program loads its data itself, while nothing else goes on."""

from __future__ import annotations

from teho.explain.program_context import ProgramContext, more_workers, waited
from teho.explain.rule import STARVED, Mutes
from teho.model.finding import Abstention, Evidence, Finding, Threshold

__all__ = ["KIND", "MUTES", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "input_in_main_process"
RANK = 190
SAYS = "the program loads its data itself, without workers"
SEVERITY = "critical, warning"
THRESHOLDS: dict[str, Threshold] = {}
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
    """Look at a loader without workers that is waited for."""
    waiting = context.waiting()
    if waiting is None or waiting.settings.get("num_workers") != 0:
        return []
    workers = context.best_workers(waiting)
    beside = more_workers(waiting, workers, "persistent_workers=True")
    keeping = context.keeping(waiting.main)
    return [
        context.lost(
            f"{waited(waiting)}: it loads them itself, without workers.",
            share_percent=waiting.share_percent,
            evidence=(
                Evidence("waiting for data", waiting.share_percent, "%"),
                Evidence("workers", 0.0),
                Evidence("cores", float(waiting.cores), "cores"),
            ),
            action=f"Load them beside the work: {beside}{'; or ' if keeping else ''}{keeping}.",
            regain_percent=context.by_workers(waiting, workers),
            lines=waiting.main.feed.lines,
        )
    ]
