"""Workers hand over what lies in memory already."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.causes._watch import Watch, in_loader, waited
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.program import Part
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["KIND", "judge"]

KIND = "input_workers_needless"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Look at workers of a data set of tensors, or that do little but put batches together."""
    watch = Watch(KIND, run, summary, thresholds)
    waiting = watch.waiting()
    if waiting is None or waiting.workers == 0 or not waiting.settings.get("batch_size"):
        return []
    share = waiting.worked_percent(Part.COLLATING)
    in_memory = waiting.is_in_memory
    if not in_memory and share < watch.limit("collating_percent"):
        return []
    what = "lie in memory" if in_memory else "are only put together"
    return [
        watch.lost(
            f"{waited(waiting)}, while workers pass it samples that {what}.",
            share_percent=waiting.share_percent,
            evidence=(
                Evidence("waiting for data", waiting.share_percent, "%"),
                Evidence("workers, putting batches together", share, "%"),
                Evidence("workers", float(waiting.workers)),
            ),
            judged_by=["collating_percent"],
            action=(
                f"Do without them, {in_loader(waiting, 'num_workers=0')}, and index the tensors "
                "a batch at a time: "
                "`for rows in torch.randperm(n).split(batch_size): x[rows], y[rows]`."
            ),
            regain_percent=(waiting.share_percent / 2 if in_memory else 0.0, waiting.share_percent),
            lines=waiting.main.feed.lines,
        )
    ]
