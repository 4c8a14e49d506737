"""Workers pass on samples that are in memory already."""

from __future__ import annotations

from teho.explain.kinds import STARVED, input_causes_after
from teho.explain.loader_words import loader_call
from teho.explain.rule import Evidence, Findings, ProgramContext, chosen
from teho.model.program import Part

RANK = 130
SEVERITY = "critical, warning"
THRESHOLDS = {
    "collating_percent": chosen(
        50.0,
        "%",
        "above this limit, the workers spend most of their working time on putting samples "
        "together into batches",
    ),
}
MUTES = (*input_causes_after("input_workers_needless"), *STARVED)
MUTES_BECAUSE = "the program does not need workers; so other settings of the workers do not help"


def judge(context: ProgramContext) -> Findings:
    """Find workers with a data set of tensors, or workers that mostly put batches together."""
    waiting = context.waiting()
    if waiting is None or waiting.workers == 0 or not waiting.settings.get("batch_size"):
        return
    if waiting.loader.library != "torch":  # other libraries need no tensors
        return
    share = waiting.worked_percent(Part.COLLATING)
    in_memory = waiting.is_in_memory
    if not in_memory and share < context.limit("collating_percent"):
        return
    did = (
        "only send samples that are already in memory"
        if in_memory
        else "spent most of their working time on putting samples together into batches"
    )
    yield context.lost_waiting(
        waiting,
        f": the workers {did}.",
        evidence=(
            Evidence("share of the loading time spent on putting batches together", share, "%"),
            Evidence("workers", float(waiting.workers)),
        ),
        action=(
            f"Use no workers: {loader_call(waiting.loader, num_workers=0)}. Or take all samples of "
            "a batch from the tensors at once, with a generator instead of the `DataLoader`: "
            "`for rows in torch.randperm(n).split(batch_size): yield x[rows], y[rows]`."
        ),
        regain_percent=(waiting.share_percent / 2 if in_memory else 0.0, waiting.share_percent),
    )
