"""The program waits for its GPU again and again, and the GPU for it."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.causes._watch import Watch
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.program import Doing
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["KIND", "judge"]

KIND = "waits_for_device"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Look at how long a main thread waited for a GPU that idled meanwhile."""
    watch = Watch(KIND, run, summary, thresholds)
    for main in watch.mains:
        if not watch.is_loss(main.seconds(Doing.DEVICE), main):
            continue
        busy = watch.gpu_busy_percent(main)
        # To wait for a GPU that works is as it should be: somebody has to.
        if busy is None or busy >= watch.limit("busy_percent"):
            continue
        share = main.percent(Doing.DEVICE)
        return [
            watch.lost(
                f"The program waited for the GPU for {share:.0f} % of the time, and the GPU was "
                f"busy for {busy:.0f} %: they take turns.",
                share_percent=share,
                evidence=(
                    Evidence("waiting for the device", share, "%"),
                    Evidence("GPU busy, mean", busy, "%"),
                ),
                judged_by=["busy_percent"],
                action=(
                    "Leave results on the GPU until an epoch is over: `.item()`, `.cpu()`, "
                    "`print(loss)` and `if loss > x:` each wait for all work before them. Add "
                    "losses up as tensors."
                ),
                regain_percent=(0.0, min(share, 100 - busy)),
                lines=main.lines(Doing.DEVICE),
            )
        ]
    return watch.outcome([])
