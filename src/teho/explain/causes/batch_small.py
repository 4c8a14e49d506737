"""The batches are small for the GPU: it has room for larger ones, and too little to do."""

from __future__ import annotations

import math
from collections.abc import Mapping

from teho.explain.causes._watch import Watch, is_on_gpu
from teho.explain.rules._look import Gpu, known
from teho.model.finding import Abstention, Evidence, Finding, Severity, Threshold
from teho.model.run import Run
from teho.model.summary import Summary
from teho.units import format_bytes

__all__ = ["KIND", "judge"]

KIND = "batch_small"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Look at the memory and the use of GPUs that do not wait for data."""
    watch = Watch(KIND, run, summary, thresholds)
    # One that waits holds up those that wait for it.
    if any(watch.is_loss(main.feed.wait_s, main) for main in watch.mains):
        return []
    for main in watch.mains:
        loader = watch.loader_of(main)
        if loader is None or not is_on_gpu(main):
            continue
        batch, samples = loader.settings.get("batch_size"), loader.settings.get("samples")
        if not isinstance(batch, int) or not 0 < batch < (samples or math.inf):
            continue
        memory = watch.gpu_memory_bytes(main)
        if memory is None:
            continue
        used, total = memory
        if used >= total * watch.limit("memory_percent") / 100:
            continue
        seen = [_use(watch, of) for of in watch.gpus_beside(main)]
        uses = [use for use in seen if use is not None]
        if len(uses) < len(seen) or not all(percent < limit for _, percent, limit in uses):
            continue
        label, percent, _ = max(uses, key=lambda use: use[1])
        return [
            watch.finding(
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
    return watch.outcome([])


def _use(watch: Watch, of: Gpu) -> tuple[str, float, float] | None:
    """Return how much of a GPU had work while it was at work, or else for how long it had any.

    A label, a share in % and the limit of that share; None, and noted, where neither is known.
    """
    if known([of], "gpu_sm_active_percent", "mean"):
        active = watch.while_working(of, "gpu_sm_active_percent")
        if active is not None:
            return "SM activity while at work", active, watch.limit("sm_active_percent")
    busy = watch.stat(of, "gpu_busy_percent")
    return ("GPU busy, mean", busy.mean, watch.limit("busy_percent")) if busy else None
