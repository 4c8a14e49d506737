"""Workers hand over what is in memory already."""

from __future__ import annotations

from teho.explain.program_context import ProgramContext, in_loader, waited
from teho.explain.rule import STARVED, Mutes, input_causes_after
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.program import Part

__all__ = ["KIND", "MUTES", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "input_workers_needless"
RANK = 130
SAYS = "workers pass on samples that are in memory already"
SEVERITY = "critical, warning"
THRESHOLDS = {
    "collating_percent": Threshold(50.0, "%", "Teho's own choice: most of what the workers do"),
}
MUTES = Mutes(
    (
        *input_causes_after(KIND),
        *STARVED,
    ),
    because="the workers themselves are too many",
)


def judge(context: ProgramContext) -> list[Finding] | Abstention:
    """Look at workers of a data set of tensors, or that do little but put batches together."""
    waiting = context.waiting()
    if waiting is None or waiting.workers == 0 or not waiting.settings.get("batch_size"):
        return []
    share = waiting.worked_percent(Part.COLLATING)
    in_memory = waiting.is_in_memory
    if not in_memory and share < context.limit("collating_percent"):
        return []
    what = "lie in memory" if in_memory else "are only put together"
    return [
        context.lost(
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
