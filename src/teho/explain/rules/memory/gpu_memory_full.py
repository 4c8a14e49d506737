"""A GPU's memory was nearly full."""

from __future__ import annotations

from teho.explain.context import NodeGpu, RuleContext, known, name_all, per_place, span
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.model.missing import Missing, Reason

__all__ = ["KIND", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "gpu_memory_full"
RANK = 550
SAYS = "a GPU's memory was nearly full"
SEVERITY = "remark"
THRESHOLDS = {
    "used_percent": Threshold(
        95.0,
        "%",
        "Teho's own choice: what is left is about what a CUDA context and fragmentation take",
    ),
}


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Find GPUs whose memory in use came close to all that they have."""
    full: list[tuple[NodeGpu, float]] = []
    for of in context.gpus:
        used = context.stat(of, "gpu_memory_used_bytes")
        if used is None:
            continue
        total = context.figure(
            of, "GPU memory, total", of.gpu.device.memory_bytes or Missing(Reason.UNSUPPORTED)
        )
        if total is None:
            continue
        percent = 100 * used.max / total
        if percent >= context.limit("used_percent"):
            full.append((of, percent))
    return context.outcome([_finding(context, full)] if full else [])


def _finding(context: RuleContext, full: list[tuple[NodeGpu, float]]) -> Finding:
    places = [of for of, _ in full]
    return context.finding(
        Severity.REMARK,
        f"The memory of {name_all(places)} was {span([at for _, at in full], '%')} full.",
        evidence=(
            *per_place("GPU memory used, highest share", "%", full),
            *per_place(
                "GPU memory used, highest", "bytes", known(places, "gpu_memory_used_bytes", "max")
            ),
        ),
        judged_by=["used_percent"],
        action=(
            "A larger `batch_size` may not fit. PyTorch prints what it needed, "
            "`torch.cuda.max_memory_allocated()`; JAX and TensorFlow take most of the memory at "
            "the start, unless `XLA_PYTHON_CLIENT_PREALLOCATE=false` or "
            "`TF_FORCE_GPU_ALLOW_GROWTH=true` is set."
        ),
        subjects=places,
    )
