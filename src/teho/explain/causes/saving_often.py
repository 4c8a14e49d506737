"""Saving takes a good part of the time."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.causes._watch import Watch
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.program import Doing
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["KIND", "judge"]

KIND = "saving_often"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Look at how long the program saved."""
    watch = Watch(KIND, run, summary, thresholds)
    for main in watch.mains:
        saved_s = main.seconds(Doing.SAVING)
        if not watch.is_loss(saved_s, main):
            continue
        share = main.percent(Doing.SAVING)
        return [
            watch.lost(
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
