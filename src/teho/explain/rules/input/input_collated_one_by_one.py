"""Batches are put together sample by sample, without workers."""

from __future__ import annotations

from teho.explain.kinds import STARVED
from teho.explain.rule import Evidence, Findings, ProgramContext, chosen
from teho.model.program import Part

RANK = 150
SEVERITY = "critical, warning"
THRESHOLDS = {
    "collating_percent": chosen(
        50.0, "%", "above this limit, putting batches together takes most of the loading time"
    )
}
_COLLATING = "share of the waiting time spent on putting batches together"
MUTES = ("input_in_main_process", "input_slow", "python_bound", *STARVED)
MUTES_BECAUSE = "this finding says which part of loading is slow, and how to avoid this part"


def judge(context: ProgramContext) -> Findings:
    """Check a loader without workers for the time of putting batches together."""
    waiting = context.waiting()
    if waiting is None or waiting.workers > 0 or not waiting.settings.get("batch_size"):
        return
    if waiting.loader.library != "torch":  # other libraries have no such sampler
        return
    share = 100 * waiting.main.feed.main_s.get(Part.COLLATING, 0.0) / waiting.wait_s
    if not waiting.is_in_memory and share < context.limit("collating_percent"):
        return
    how = (
        "Take all samples of a batch from the tensors at once, with a generator instead of the "
        "`DataLoader`: `for rows in torch.randperm(n).split(batch_size): yield x[rows], y[rows]`."
        if waiting.is_in_memory
        else "Let the data set return whole batches: `DataLoader(…, batch_size=None)` with a "
        "`BatchSampler` as sampler."
    )
    yield context.lost_waiting(
        waiting,
        ": the data loader takes single samples from tensors in memory."
        if waiting.is_in_memory
        else ": each batch is put together sample by sample.",
        evidence=(
            *(() if waiting.is_in_memory else (Evidence(_COLLATING, share, "%"),)),
            Evidence("batch size", float(waiting.settings["batch_size"]), "samples"),
        ),
        action=f"{how} Python code for each single sample is slow.",
        regain_percent=(waiting.share_percent / 2, waiting.share_percent),
    )
