"""Batches leave most of a GPU's memory free, and the GPU has too little work."""

from __future__ import annotations

import math

from teho.explain.places import NodeGpu, recorded
from teho.explain.program_context import is_on_gpu
from teho.explain.rule import Evidence, Findings, ProgramContext, Severity, Threshold
from teho.units import counted, format_bytes

RANK = 260
SEVERITY = "remark"
THRESHOLDS = {
    "memory_percent": Threshold(
        50.0,
        "%",
        "SageMaker's profiler rules (rule BatchSize) warn if a program uses less than 70 % of "
        "the GPU's memory; Teho's threshold is 50 %, so that a batch of twice the size fits into "
        "the memory",
    ),
    "sm_active_percent": Threshold(
        80.0, "%", "as in the rule gpu_sm_low: above this limit, the GPU has enough work"
    ),
    "busy_percent": Threshold(
        50.0, "%", "as in the rule gpu_low_use: below this limit, the GPU has too little work"
    ),
}


def judge(context: ProgramContext) -> Findings:
    """Check the memory and the use of GPUs that do not wait for data."""
    # A rank that waits for data delays the ranks that wait for it.
    if any(context.is_loss(main.feed.wait_s, main) for main in context.mains):
        return
    for main in context.mains:
        loader = context.loader_of(main)
        if loader is None or not is_on_gpu(main):
            continue
        batch, samples = loader.settings.get("batch_size"), loader.settings.get("samples")
        if not isinstance(batch, int) or not 0 < batch < (samples or math.inf):
            continue
        memory = context.gpu_memory_bytes(main)
        if memory is None:
            continue
        used, total = memory
        if used >= total * context.limit("memory_percent") / 100:
            continue
        uses = [_low_use(context, gpu) for gpu in context.gpus_beside(main)]
        low = [use for use in uses if use is not None]
        if len(low) < len(uses):
            continue
        label, percent = max(low, key=lambda use: use[1])
        context.forget_lacks()
        yield context.finding(
            Severity.REMARK,
            f"Batches of {counted(batch, 'sample')} leave {format_bytes(total - used)} of the "
            f"GPU's {format_bytes(total)} of memory free, and the GPU has too little work.",
            evidence=(
                Evidence("batch size", float(batch), "samples"),
                Evidence("GPU memory used, highest", used, "bytes"),
                Evidence("used share of the GPU memory, highest", 100 * used / total, "%"),
                Evidence(label, percent, "%"),
            ),
            action=(
                "Try batches that are two, four and eight times as large: `teho tune --allow "
                "batch-size -- …` measures the gain. Larger batches change the training: the "
                "learning rate may have to change too."
            ),
        )
        return


def _low_use(context: ProgramContext, gpu: NodeGpu) -> tuple[str, float] | None:
    """Return how much of a GPU had work, or how long it was busy: a label and a share in %.

    None if the share is not low. None, and noted, if neither is known.
    """
    if recorded([gpu], "gpu_sm_active_percent"):
        active = context.at_work(gpu, "gpu_sm_active_percent")
        if active is not None:
            low = active < context.limit("sm_active_percent")
            return ("SM activity while the GPU was busy", active) if low else None
    busy = context.mean(gpu, "gpu_busy_percent")
    low = busy is not None and busy < context.limit("busy_percent")
    return ("GPU busy, mean", busy) if busy is not None and low else None
