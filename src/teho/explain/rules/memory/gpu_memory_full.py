"""A GPU's memory was nearly full."""

from __future__ import annotations

from operator import ge

from teho.explain.limits import Level, compare_with_limits
from teho.explain.moments import near_peak
from teho.explain.places import NodeGpu, gauges
from teho.explain.rule import Findings, RuleContext, Severity, chosen

RANK = 550
SEVERITY = "remark"
THRESHOLDS = {
    "used_percent": chosen(
        95.0,
        "%",
        "CUDA itself, and gaps between allocated blocks, need the last 5 % of the GPU's memory",
    ),
}


def judge(context: RuleContext) -> Findings:
    """Find GPUs whose memory was nearly full."""
    yield from compare_with_limits(
        context,
        [(gpu, _used_percent(context, gpu)) for gpu in context.gpus],
        [Level(Severity.REMARK, ge, "used_percent")],
        sentence="The memory of {places} was {figures} full.",
        label="used share of the GPU memory, highest",
        further=lambda gpus: gauges(gpus, "gpu_memory_used_bytes", "max"),
        shown_by="gpu_memory_used_bytes",
        shows=lambda gpu, _: near_peak(gpu, "gpu_memory_used_bytes"),
        action=(
            "Before you use a larger `batch_size`, check whether the larger batch fits. In "
            "PyTorch, print how much memory was needed: `torch.cuda.max_memory_allocated()`. JAX "
            "and TensorFlow take most of the memory at the start, even if they need less. To "
            "prevent this, set `XLA_PYTHON_CLIENT_PREALLOCATE=false` or "
            "`TF_FORCE_GPU_ALLOW_GROWTH=true`."
        ),
    )


def _used_percent(context: RuleContext, gpu: NodeGpu) -> float | None:
    used_bytes = context.highest(gpu, "gpu_memory_used_bytes")
    total_bytes = context.gpu_memory_total(gpu) if used_bytes is not None else None
    return 100 * used_bytes / total_bytes if used_bytes is not None and total_bytes else None
