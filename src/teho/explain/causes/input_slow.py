"""The program waits for its data, and nothing cheap would load them faster."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.causes._watch import Watch, is_python, waited
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.missing import Missing, Reason
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["KIND", "judge"]

KIND = "input_slow"
_UNSEEN = Missing(Reason.UNRECORDED, "no Python program was looked into")


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Look at waiting for data that no other rule explains; it speaks for all where none can."""
    watch = Watch(KIND, run, summary, thresholds)
    if summary.program is None and is_python(run.command):
        for node in summary.nodes:
            watch.figure(node, "where the program's time went", _UNSEEN)
        return watch.outcome([])
    waiting = watch.waiting()
    if waiting is None:
        return []
    keeping = watch.keeping(waiting.main)
    return [
        watch.lost(
            f"{waited(waiting)}.",
            share_percent=waiting.share_percent,
            evidence=(
                Evidence("waiting for data", waiting.share_percent, "%"),
                Evidence("workers", float(waiting.workers)),
                Evidence("cores", float(waiting.cores), "cores"),
            ),
            action=(
                "Do less for each sample in the lines below: decode and cut to size before the "
                f"job, and store the result{'; or ' if keeping else ''}{keeping}. More cores would "
                "also help."
            ),
            regain_percent=(0.0, waiting.share_percent),
            lines=waiting.main.feed.lines,
        )
    ]
