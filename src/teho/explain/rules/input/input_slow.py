"""The program waits for its data, and nothing cheap would load them faster."""

from __future__ import annotations

from teho.explain.program_context import ProgramContext, is_python, waited
from teho.explain.rule import Mutes
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.missing import Missing, Reason

__all__ = ["KIND", "MUTES", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "input_slow"
RANK = 200
SAYS = "the program waits for its data, and no other rule says why"
SEVERITY = "critical, warning"
THRESHOLDS: dict[str, Threshold] = {}
MUTES = Mutes(
    ("gpu_low_use", "io_wait_gpu_idle", "cpu_busy_gpu_idle"),
    because="it says what it waits for",
)
_UNSEEN = Missing(Reason.UNRECORDED, "no Python program was looked into")


def judge(context: ProgramContext) -> list[Finding] | Abstention:
    """Look at waiting for data that no other rule explains; it speaks for all where none can."""
    if context.summary.program is None and is_python(context.run.command):
        for node in context.summary.nodes:
            context.figure(node, "where the program's time went", _UNSEEN)
        return context.outcome([])
    waiting = context.waiting()
    if waiting is None:
        return []
    keeping = context.keeping(waiting.main)
    return [
        context.lost(
            f"{waited(waiting)}.",
            share_percent=waiting.share_percent,
            evidence=(
                Evidence("waiting for data", waiting.share_percent, "%"),
                Evidence("workers", float(waiting.workers)),
                Evidence("cores", float(waiting.cores), "cores"),
            ),
            action=(
                "Do less for each sample in the lines below: decode and cut to size before the "
                f"job, and store the result{'; or ' if keeping else ''}{keeping}. More cores would "
                "also help."
            ),
            regain_percent=(0.0, waiting.share_percent),
            lines=waiting.main.feed.lines,
        )
    ]
