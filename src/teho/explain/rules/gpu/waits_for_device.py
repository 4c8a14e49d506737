"""The program waits for its GPU again and again, and the GPU for it."""

from __future__ import annotations

from teho.explain.program_context import ProgramContext
from teho.explain.rule import Mutes
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.program import Doing

__all__ = ["KIND", "MUTES", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "waits_for_device"
RANK = 240
SAYS = "the program and the GPU wait for each other in turns"
SEVERITY = "critical, warning"
THRESHOLDS = {
    "busy_percent": Threshold(
        80.0,
        "%",
        "Teho's own choice: a GPU that is busy for more is what the program has to wait for",
    ),
}
MUTES = Mutes(
    ("gpu_low_use", "batch_small"),
    because="it says what it waits for",
)


def judge(context: ProgramContext) -> list[Finding] | Abstention:
    """Look at how long a main thread waited for a GPU that idled meanwhile."""
    for main in context.mains:
        if not context.is_loss(main.seconds(Doing.DEVICE), main):
            continue
        busy = context.gpu_busy_percent(main)
        # To wait for a GPU that works is as it should be: somebody has to.
        if busy is None or busy >= context.limit("busy_percent"):
            continue
        share = main.percent(Doing.DEVICE)
        return [
            context.lost(
                f"The program waited for the GPU for {share:.0f} % of the time, and the GPU was "
                f"busy for {busy:.0f} %: they take turns.",
                share_percent=share,
                evidence=(
                    Evidence("waiting for the device", share, "%"),
                    Evidence("GPU busy, mean", busy, "%"),
                ),
                judged_by=["busy_percent"],
                action=(
                    "Leave results on the GPU until an epoch is over: `.item()`, `.cpu()`, "
                    "`print(loss)` and `if loss > x:` each wait for all work before them. Add "
                    "losses up as tensors."
                ),
                regain_percent=(0.0, min(share, 100 - busy)),
                lines=main.lines(Doing.DEVICE),
            )
        ]
    return context.outcome([])
