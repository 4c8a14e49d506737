"""The program waits while its batches are copied to the GPU."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.causes._watch import Waiting, Watch, in_loader
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.program import Doing
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["KIND", "judge"]

KIND = "copies_from_pageable_memory"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Look at how long a main thread copied to a GPU, from a loader that pins nothing."""
    watch = Watch(KIND, run, summary, thresholds)
    for main in watch.mains if watch.gpus else ():
        loader = main.feed.loader
        copying = main.percent(Doing.COPYING)
        if loader is None or loader.settings.get("pin_memory", True):
            continue
        if not watch.is_loss(main.seconds(Doing.COPYING), main):
            continue
        busy = watch.gpu_busy_percent(main)
        if busy is None:
            continue
        # A copy from such memory begins when all work before it is done: most of the time may be
        # waiting for a GPU that works.
        share = min(copying, 100 - busy)
        if not watch.is_loss(share / 100 * main.process.wall_s, main):
            continue
        waiting = Waiting(main, share, loader.settings, watch.cores_of(main))
        return [
            watch.lost(
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
    return watch.outcome([])
