"""Loading and copying data takes time, and all of the data would fit into the GPU's memory."""

from __future__ import annotations

from teho.explain.kinds import INPUT_CAUSES
from teho.explain.program_context import data_bytes, is_on_gpu
from teho.explain.rule import Evidence, Findings, ProgramContext, Severity, Threshold
from teho.model.missing import Missing, Reason
from teho.model.program import Doing
from teho.units import format_bytes

RANK = 230
SEVERITY = "remark"
THRESHOLDS = {
    "free_share_percent": Threshold(
        50.0,
        "%",
        "the best practices of the Digital Research Alliance of Canada advise you to load all "
        "data into the GPU's memory if the data fit; for Teho, the data must fit into half of "
        "the free memory",
    ),
}
SAME_LOSS_AS = (*INPUT_CAUSES, "input_of_one_rank_slower", "copies_from_pageable_memory")
"""They would save the same time as this rule: it is claimed once."""
_UNSEEN = Missing(Reason.UNRECORDED, "the data loader does not report the size of its data")


def judge(context: ProgramContext) -> Findings:
    """Compare the size of all samples with the free GPU memory, if loading takes time."""
    for main in context.mains:
        loader, node = context.loader_of(main), context.node_of(main)
        # Data that are used in one epoch have to be copied once anyway.
        if loader is None or node is None or loader.epochs < 2 or not is_on_gpu(main):
            continue
        wall_s = main.process.wall_s
        transfer_s = main.feed.wait_s + main.seconds(Doing.COPYING)
        if loader.settings.get("is_iterable") or not context.is_loss(transfer_s, main):
            continue
        gpu = context.gpu_use(main)
        if gpu is None:
            continue
        # Time in which the GPU works is not lost.
        share = min(100 * transfer_s / wall_s, gpu.idle_percent)
        if not context.is_loss(share / 100 * wall_s, main):
            continue
        size = context.figure(node, "size of all samples", data_bytes(main) or _UNSEEN)
        memory = context.gpu_memory_bytes(main)
        if size is None or memory is None:
            continue
        used, total = memory
        free = total - used
        if size > free * context.limit("free_share_percent") / 100:
            continue
        batch = loader.settings["batch_size"]
        context.forget_lacks()
        yield context.finding(
            # The findings above it name the cause; this is another remedy.
            Severity.REMARK,
            f"The whole data set ({format_bytes(size)}) would fit into the {format_bytes(free)} of "
            "GPU memory that stayed free.",
            evidence=(
                Evidence("waiting for data", 100 * main.feed.wait_s / wall_s, "%"),
                Evidence("time spent on copies to the GPU", main.percent(Doing.COPYING), "%"),
                gpu.evidence,
                Evidence("size of all samples", float(size), "bytes"),
                Evidence("GPU memory that stayed free", free, "bytes"),
            ),
            judged_by=["lost_percent", "free_share_percent"],
            action=(
                'Copy the data to the GPU once: `x, y = x.to("cuda"), y.to("cuda")`. Then take '
                "the batches from these tensors: `for rows in torch.randperm(n, "
                f'device="cuda").split({batch}): x[rows], y[rows]`. If you change samples at '
                "random, for example with flips and crops, do this on the GPU too, for a whole "
                f"batch at once. `teho.feed.resident((x, y), {batch}, shuffle=True)` copies the "
                "data and makes the batches for you."
            ),
            regain_percent=(0.0, share),
        )
        return
