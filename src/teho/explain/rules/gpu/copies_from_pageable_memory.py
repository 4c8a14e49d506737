"""The program waits while its batches are copied to the GPU."""

from __future__ import annotations

from teho.explain.program_context import ProgramContext, Waiting, in_loader
from teho.explain.rule import Mutes
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.program import Doing

__all__ = ["KIND", "MUTES", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "copies_from_pageable_memory"
RANK = 220
SAYS = "the program copies batches to an idle GPU from memory that is not pinned"
SEVERITY = "critical, warning"
THRESHOLDS: dict[str, Threshold] = {}
MUTES = Mutes(
    ("gpu_low_use", "batch_small"),
    because="it says what it waits for",
)


def judge(context: ProgramContext) -> list[Finding] | Abstention:
    """Look at how long a main thread copied to a GPU, from a loader that pins nothing."""
    for main in context.mains if context.gpus else ():
        loader = main.feed.loader
        copying = main.percent(Doing.COPYING)
        if loader is None or loader.settings.get("pin_memory", True):
            continue
        if not context.is_loss(main.seconds(Doing.COPYING), main):
            continue
        busy = context.gpu_busy_percent(main)
        if busy is None:
            continue
        # A copy from such memory begins when all work before it is done: most of the time may be
        # waiting for a GPU that works.
        share = min(copying, 100 - busy)
        if not context.is_loss(share / 100 * main.process.wall_s, main):
            continue
        waiting = Waiting(main, share, loader.settings, context.cores_of(main))
        return [
            context.lost(
                f"The program copied to the GPU for {copying:.0f} % of the time, from memory that "
                "is not pinned: it cannot go on meanwhile.",
                share_percent=share,
                evidence=(
                    Evidence("copying to the device", copying, "%"),
                    Evidence("GPU busy, mean", busy, "%"),
                ),
                action=(
                    f"Pin the batches, {in_loader(waiting, 'pin_memory=True')}, and copy beside "
                    'the work, `x.to("cuda", non_blocking=True)`.'
                ),
                regain_percent=(share / 2, share),
                lines=main.lines(Doing.COPYING),
            )
        ]
    return context.outcome([])
