"""Workers are started anew for each epoch."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.causes._watch import Watch, in_loader, waited
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.program import Doing
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
    loader = waiting.main.feed.loader if waiting else None
    if waiting is None or loader is None or waiting.workers == 0:
        return []
    # A loader that keeps its workers starts them anew where it is itself made anew.
    kept = waiting.settings.get("persistent_workers")
    starts = min(loader.made, loader.epochs) if kept else loader.epochs
    if starts < max(1, watch.limit("epochs_min")):
        return []
    # The first batch of an epoch has to be loaded, too, whoever does.
    loading_s = loader.epochs * waiting.work_s / max(1, loader.batches)
    first = 100 * min(1.0, max(0.0, loader.first_s - loading_s) / waiting.wait_s)
    if first < watch.limit("first_batches_percent"):
        return []
    lost_percent = waiting.share_percent * first / 100
    return [
        watch.lost(
            f"{waited(waiting)}, most of it for workers to start, {starts} times.",
            share_percent=waiting.share_percent,
            evidence=(
                Evidence("waiting for data", waiting.share_percent, "%"),
                Evidence("of that, until workers had started", first, "%"),
                Evidence("first batch of an epoch, mean", loader.first_s / loader.epochs, "s"),
            ),
            judged_by=["epochs_min", "first_batches_percent"],
            action=(
                f"Keep them: {in_loader(waiting, 'persistent_workers=True')}, and make the loader "
                "once, before the epochs."
            ),
            regain_percent=(lost_percent / 2, lost_percent),
            lines=waiting.main.lines(Doing.LOADING),
        )
    ]
