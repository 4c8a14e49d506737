"""Batches are put together sample by sample, from what is in memory whole."""

from __future__ import annotations

from teho.explain.program_context import ProgramContext, waited
from teho.explain.rule import STARVED, Mutes
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.program import Part

__all__ = ["KIND", "MUTES", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "input_collated_one_by_one"
RANK = 150
SAYS = "batches are put together sample by sample, without workers"
SEVERITY = "critical, warning"
THRESHOLDS = {
    "collating_percent": Threshold(50.0, "%", "Teho's own choice: most of the loading"),
}
MUTES = Mutes(
    (
        "input_in_main_process",
        "input_slow",
        "python_bound",
        *STARVED,
    ),
    because="what takes the time need not be done at all",
)


def judge(context: ProgramContext) -> list[Finding] | Abstention:
    """Look at a loader without workers whose time goes into putting batches together."""
    waiting = context.waiting()
    if waiting is None or waiting.workers > 0 or not waiting.settings.get("batch_size"):
        return []
    share = waiting.percent(Part.COLLATING)
    in_memory = waiting.is_in_memory
    if not in_memory and share < context.limit("collating_percent"):
        return []
    how = (
        "index the tensors a batch at a time: "
        "`for rows in torch.randperm(n).split(batch_size): x[rows], y[rows]`"
        if in_memory
        else "let the data set return a whole batch, with `DataLoader(…, batch_size=None)` and a "
        "`BatchSampler` as its sampler"
    )
    return [
        context.lost(
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
