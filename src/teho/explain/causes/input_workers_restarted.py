"""Workers are started anew for each epoch."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.causes._watch import Watch, in_loader, waited
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["KIND", "judge"]

KIND = "input_workers_restarted"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Look at loaders whose first batches, one an epoch, are what is waited for."""
    watch = Watch(KIND, run, summary, thresholds)
    waiting = watch.waiting()
    if waiting is None or waiting.workers == 0 or waiting.settings.get("persistent_workers"):
        return []
    loader = waiting.main.feed.loader
    if loader is None or loader.epochs < watch.limit("epochs_min"):
        return []
    first = 100 * min(1.0, loader.first_s / waiting.wait_s)
    if first < watch.limit("first_batches_percent"):
        return []
    lost_percent = waiting.share_percent * first / 100
    return [
        watch.lost(
            f"{waited(waiting)}, most of it for workers to start: that happens anew in each of "
            f"{loader.epochs} epochs.",
            share_percent=waiting.share_percent,
            evidence=(
                Evidence("waiting for data", waiting.share_percent, "%"),
                Evidence("of that, first batch of an epoch", first, "%"),
                Evidence("first batch of an epoch, mean", loader.first_s / loader.epochs, "s"),
            ),
            judged_by=["epochs_min", "first_batches_percent"],
            action=(
                f"Keep them: {in_loader(waiting, 'persistent_workers=True')}, and make the loader "
                "once, before the epochs."
            ),
            regain_percent=(lost_percent / 2, lost_percent),
        )
    ]
