"""The ranks exchange gradients several times for each step of the optimizer."""

from __future__ import annotations

from teho.explain.rule import Evidence, Findings, ProgramContext, chosen
from teho.explain.where import BACKWARD, time_in

RANK = 264
SEVERITY = "critical, warning"
THRESHOLDS = {
    "exchanges_per_step": chosen(
        1.9, "exchanges", "one exchange for each step of the optimizer is enough"
    ),
}
MUTES = ("communication_bound",)
MUTES_BECAUSE = "this finding says why the ranks exchange so much data"


def judge(context: ProgramContext) -> Findings:
    """Compare the exchanges of `DistributedDataParallel` with the steps of the optimizer.

    Each backward pass exchanges the gradients of all parameters, unless it runs in
    `model.no_sync()`. How much of a backward pass is exchange is not known: at most half of it is
    counted.
    """
    for main in context.mains:
        ranks = main.library.get("world_size")
        if not isinstance(ranks, int) or ranks < 2:
            continue
        per_step = main.library.get("exchanges_per_step")
        if not isinstance(per_step, float) or per_step < context.limit("exchanges_per_step"):
            continue
        backward_s, lines = time_in(main.process, BACKWARD)
        needless_s = backward_s * (1 - 1 / per_step) / 2
        if not context.is_loss(needless_s, main):
            continue
        share = 100 * needless_s / main.process.wall_s
        yield context.lost(
            f"The ranks exchanged gradients {per_step:.3g} times for each step of the optimizer. "
            "Once is enough.",
            share_percent=share,
            evidence=(
                Evidence("exchanges of gradients for each step", per_step),
                Evidence("time in the backward pass", 100 * backward_s / main.process.wall_s, "%"),
                Evidence("number of ranks", float(ranks)),
            ),
            action=(
                "If you accumulate gradients over several small batches, exchange the gradients "
                "only in the last of these batches: put all other backward passes into `with "
                "model.no_sync():`. If a step has several losses, add the losses and call "
                "`backward` once."
            ),
            regain_percent=(0.0, share),
            lines=lines,
        )
        return
