"""The batches are small for the GPU: it has room for larger ones, and too little to do."""

from __future__ import annotations

import math

from teho.explain.context import NodeGpu, known
from teho.explain.program_context import ProgramContext, is_on_gpu
from teho.model.finding import Abstention, Evidence, Finding, Severity, Threshold
from teho.units import format_bytes

__all__ = ["KIND", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "batch_small"
RANK = 260
SAYS = "batches leave most of a GPU's memory free, and the GPU has too little to do"
SEVERITY = "remark"
THRESHOLDS = {
    "memory_percent": Threshold(
        50.0,
        "%",
        "SageMaker's profiler rules, BatchSize: 70 %; Teho: half, so that twice as much fits",
    ),
    "sm_active_percent": Threshold(80.0, "%", "as gpu_sm_low"),
    "busy_percent": Threshold(50.0, "%", "as gpu_low_use"),
}


def judge(context: ProgramContext) -> list[Finding] | Abstention:
    """Look at the memory and the use of GPUs that do not wait for data."""
    # One that waits holds up those that wait for it.
    if any(context.is_loss(main.feed.wait_s, main) for main in context.mains):
        return []
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
        seen = [_use(context, of) for of in context.gpus_beside(main)]
        uses = [use for use in seen if use is not None]
        if len(uses) < len(seen) or not all(percent < limit for _, percent, limit in uses):
            continue
        label, percent, _ = max(uses, key=lambda use: use[1])
        return [
            context.finding(
                Severity.REMARK,
                f"Batches of {batch} leave {format_bytes(total - used)} of the GPU's "
                f"{format_bytes(total)} free, and it has too little to do.",
                evidence=(
                    Evidence("batch", float(batch), "samples"),
                    Evidence("GPU memory used, highest", used, "bytes"),
                    Evidence("GPU memory used, highest share", 100 * used / total, "%"),
                    Evidence(label, percent, "%"),
                ),
                judged_by=["memory_percent", "sm_active_percent", "busy_percent"],
                action=(
                    "`teho tune --allow batch-size -- …` tries batches of two, four and eight "
                    "times the size, and says what they gain. They change what is learnt: the "
                    "learning rate may have to follow."
                ),
            )
        ]
    return context.outcome([])


def _use(context: ProgramContext, of: NodeGpu) -> tuple[str, float, float] | None:
    """Return how much of a GPU had work while it was at work, or else for how long it had any.

    A label, a share in % and the limit of that share; None, and noted, where neither is known.
    """
    if known([of], "gpu_sm_active_percent", "mean"):
        active = context.while_working(of, "gpu_sm_active_percent")
        if active is not None:
            return "SM activity while at work", active, context.limit("sm_active_percent")
    busy = context.stat(of, "gpu_busy_percent")
    return ("GPU busy, mean", busy.mean, context.limit("busy_percent")) if busy else None
