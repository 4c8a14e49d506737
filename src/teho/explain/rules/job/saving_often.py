"""Saving takes a good part of the time."""

from __future__ import annotations

from teho.explain.program_context import ProgramContext
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.program import Doing

__all__ = ["KIND", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "saving_often"
RANK = 270
SAYS = "saving takes a good part of the time"
SEVERITY = "critical, warning"
THRESHOLDS: dict[str, Threshold] = {}


def judge(context: ProgramContext) -> list[Finding] | Abstention:
    """Look at how long the program saved."""
    for main in context.mains:
        saved_s = main.seconds(Doing.SAVING)
        if not context.is_loss(saved_s, main):
            continue
        share = main.percent(Doing.SAVING)
        return [
            context.lost(
                f"The program saved for {share:.0f} % of the time, and did nothing else meanwhile.",
                share_percent=share,
                evidence=(Evidence("saving", share, "%"), Evidence("saving", saved_s, "s")),
                action=(
                    "Save less often, only what is needed to go on, and to the node's own disk or "
                    "scratch; `torch.distributed.checkpoint.async_save` writes beside the work."
                ),
                regain_percent=(share / 2, share),
                lines=main.lines(Doing.SAVING),
            )
        ]
    return []
