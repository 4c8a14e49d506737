"""The program waits for the GPU, and the GPU for the program."""

from __future__ import annotations

from teho.explain.rule import Evidence, Findings, ProgramContext, chosen
from teho.explain.wording import most_of_it
from teho.model.program import Doing

RANK = 240
SEVERITY = "critical, warning"
THRESHOLDS = {
    "busy_percent": chosen(
        80.0, "%", "above this limit, it is normal that the program waits for the busy GPU"
    ),
}
MUTES = ("gpu_low_use", "batch_small")
MUTES_BECAUSE = "this finding says what the program waits for, and the GPU is idle during this time"


def judge(context: ProgramContext) -> Findings:
    """Check how long a main thread waited for a GPU that was idle meanwhile."""
    for main, share in context.losses(Doing.DEVICE):
        gpu = context.gpu_use(main)
        # Waiting for a GPU that works is normal.
        if gpu is None or gpu.busy_percent >= context.limit("busy_percent"):
            continue
        context.forget_lacks()
        lines = main.lines(Doing.DEVICE)
        yield context.lost(
            f"The program waited for the GPU {share:.0f} % of the time{most_of_it(lines)}, but the "
            f"GPU was idle {100 - gpu.busy_percent:.0f} % of the time{gpu.during}.",
            share_percent=share,
            evidence=(
                Evidence("time spent on waiting for the GPU", share, "%"),
                gpu.evidence,
            ),
            action=(
                "Leave results on the GPU until the end of an epoch: `.item()`, `.cpu()`, "
                "`print(loss)` and `if loss > x:` wait until the GPU has finished all earlier work."
            ),
            regain_percent=(0.0, min(share, gpu.idle_percent)),
            lines=lines,
        )
        return
