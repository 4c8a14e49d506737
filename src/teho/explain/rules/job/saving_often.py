"""Saving files, such as checkpoints, takes a large part of the time."""

from __future__ import annotations

from teho.explain.rule import Evidence, Findings, ProgramContext, Threshold
from teho.model.program import Doing

RANK = 270
SEVERITY = "critical, warning"
THRESHOLDS: dict[str, Threshold] = {}


def judge(context: ProgramContext) -> Findings:
    """Check how long the program saved."""
    for main, share in context.losses(Doing.SAVING):
        yield context.lost(
            f"The program stopped its work for {share:.0f} % of the time to save data.",
            share_percent=share,
            evidence=(
                Evidence("saving", share, "%"),
                Evidence("saving", main.seconds(Doing.SAVING), "s"),
            ),
            action=(
                "Save less often, save only what you need to continue, and save to the node's "
                "own disk or scratch. `torch.distributed.checkpoint.async_save` saves while the "
                "program works."
            ),
            regain_percent=(share / 2, share),
            lines=main.lines(Doing.SAVING),
        )
        return
