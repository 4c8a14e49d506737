"""The workers that load the data are all at work, and there are cores for more."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.causes._watch import Watch, more_workers, waited
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.program import Part
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["KIND", "judge"]

KIND = "input_too_few_workers"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Look at workers that work most of the time and are waited for."""
    watch = Watch(KIND, run, summary, thresholds)
    waiting = watch.waiting()
    if waiting is None or not 0 < waiting.workers < waiting.cores:
        return []
    workers = watch.best_workers(waiting)
    feed = waiting.main.feed
    busy = 100 * waiting.work_s / (waiting.work_s + feed.workers_s.get(Part.IDLE, 0.0) or 1.0)
    if workers <= waiting.workers or busy < watch.limit("busy_percent"):
        return []
    return [
        watch.lost(
            f"{waited(waiting)}: its {waiting.workers} worker"
            f"{'s' if waiting.workers > 1 else ''} cannot load them faster.",
            share_percent=waiting.share_percent,
            evidence=(
                Evidence("waiting for data", waiting.share_percent, "%"),
                Evidence("workers at work", busy, "%"),
                Evidence("workers", float(waiting.workers)),
                Evidence("cores", float(waiting.cores), "cores"),
            ),
            judged_by=["busy_percent"],
            action=f"Start more: {more_workers(waiting, workers)}.",
            regain_percent=watch.by_workers(waiting, workers),
            lines=feed.lines,
        )
    ]
