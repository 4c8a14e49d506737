"""The program loads its data itself, while nothing else goes on."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.causes._watch import Watch, more_workers, waited
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["KIND", "judge"]

KIND = "input_in_main_process"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Look at a loader without workers that is waited for."""
    watch = Watch(KIND, run, summary, thresholds)
    waiting = watch.waiting()
    if waiting is None or waiting.settings.get("num_workers") != 0:
        return []
    workers = watch.best_workers(waiting)
    beside = more_workers(waiting, workers, "persistent_workers=True")
    keeping = watch.keeping(waiting.main)
    return [
        watch.lost(
            f"{waited(waiting)}: it loads them itself, without workers.",
            share_percent=waiting.share_percent,
            evidence=(
                Evidence("waiting for data", waiting.share_percent, "%"),
                Evidence("workers", 0.0),
                Evidence("cores", float(waiting.cores), "cores"),
            ),
            action=f"Load them beside the work: {beside}{'; or ' if keeping else ''}{keeping}.",
            regain_percent=watch.by_workers(waiting, workers),
            lines=waiting.main.feed.lines,
        )
    ]
