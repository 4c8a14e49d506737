"""Batches are put together sample by sample, from what lies in memory whole."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.causes._watch import Watch, waited
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.program import Part
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["KIND", "judge"]

KIND = "input_collated_one_by_one"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Look at a loader without workers whose time goes into putting batches together."""
    watch = Watch(KIND, run, summary, thresholds)
    waiting = watch.waiting()
    if waiting is None or waiting.workers > 0 or not waiting.settings.get("batch_size"):
        return []
    share = waiting.percent(Part.COLLATING)
    in_memory = waiting.is_in_memory
    if not in_memory and share < watch.limit("collating_percent"):
        return []
    how = (
        "index the tensors a batch at a time: "
        "`for rows in torch.randperm(n).split(batch_size): x[rows], y[rows]`"
        if in_memory
        else "let the data set return a whole batch, with `DataLoader(…, batch_size=None)` and a "
        "`BatchSampler` as its sampler"
    )
    return [
        watch.lost(
            f"{waited(waiting)}: each batch is put together sample by sample.",
            share_percent=waiting.share_percent,
            evidence=(
                Evidence("waiting for data", waiting.share_percent, "%"),
                Evidence("of that, putting batches together", share, "%"),
                Evidence("batch", float(waiting.settings["batch_size"]), "samples"),
            ),
            judged_by=["collating_percent"],
            action=f"Spare each sample its way through Python: {how}.",
            regain_percent=(waiting.share_percent / 2, waiting.share_percent),
            lines=waiting.main.feed.lines,
        )
    ]
