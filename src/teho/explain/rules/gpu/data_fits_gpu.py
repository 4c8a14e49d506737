"""The data are brought to the GPU again and again, and all of them would fit there."""

from __future__ import annotations

from teho.explain.program_context import ProgramContext, data_size, is_on_gpu
from teho.explain.rule import INPUT_CAUSES
from teho.model.finding import Abstention, Evidence, Finding, Severity, Threshold
from teho.model.missing import Missing, Reason
from teho.model.program import Doing
from teho.units import format_bytes

__all__ = ["KIND", "RANK", "SAME_LOSS_AS", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "data_fits_gpu"
RANK = 230
SAYS = "bringing data to the GPU takes time, and all of the data would fit there"
SEVERITY = "remark"
THRESHOLDS = {
    "free_share_percent": Threshold(
        50.0,
        "%",
        "Alliance, best practices: load all in one go where space is more than enough; here twice",
    ),
}
SAME_LOSS_AS = (*INPUT_CAUSES, "input_of_one_rank_slower", "copies_from_pageable_memory")
"""Their gain and the gain of this rule are the same time: it is claimed once."""
_UNSEEN = Missing(Reason.UNRECORDED, "the loader does not report it")


def judge(context: ProgramContext) -> list[Finding] | Abstention:
    """Look at what all samples take, where waiting for them and copying them take time."""
    for main in context.mains:
        loader, node = context.loader_of(main), context.node_of(main)
        # What is gone through once is brought there once, however that is done.
        if loader is None or node is None or loader.epochs < 2 or not is_on_gpu(main):
            continue
        wall_s = main.process.wall_s
        bringing_s = main.feed.wait_s + main.seconds(Doing.COPYING)
        if loader.settings.get("is_iterable") or not context.is_loss(bringing_s, main):
            continue
        busy = context.gpu_busy_percent(main)
        if busy is None:
            continue
        # What goes on while the GPU works is not lost.
        share = min(100 * bringing_s / wall_s, 100 - busy)
        if not context.is_loss(share / 100 * wall_s, main):
            continue
        size = context.figure(node, "size of all samples", data_size(main) or _UNSEEN)
        memory = context.gpu_memory_bytes(main)
        if size is None or memory is None:
            continue
        used, total = memory
        free = total - used
        if size > free * context.limit("free_share_percent") / 100:
            continue
        batch = loader.settings["batch_size"]
        return [
            context.finding(
                # What stands above it says why the time is lost; this is another way out.
                Severity.REMARK,
                f"All samples together take {format_bytes(size)} as batches hold them, and "
                f"{format_bytes(free)} of the GPU's memory are free: they could stay there.",
                evidence=(
                    Evidence("waiting for data", 100 * main.feed.wait_s / wall_s, "%"),
                    Evidence("copying to the device", main.percent(Doing.COPYING), "%"),
                    Evidence("GPU busy, mean", busy, "%"),
                    Evidence("all samples", float(size), "bytes"),
                    Evidence("GPU memory, always free", free, "bytes"),
                ),
                judged_by=["lost_percent", "free_share_percent"],
                action=(
                    'Copy them once, `x, y = x.to("cuda"), y.to("cuda")`, and take the batches '
                    'there: `for rows in torch.randperm(n, device="cuda").split('
                    f"{batch}): x[rows], y[rows]`. What is random for each sample, such as flips "
                    "and crops, is then done there too, for a whole batch at once."
                ),
                regain_percent=(0.0, share),
            )
        ]
    return context.outcome([])
