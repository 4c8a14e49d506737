"""Few warps were on the multiprocessors, and neither arithmetic nor memory was at its limit."""

from __future__ import annotations

from operator import lt

from teho.explain.limits import Level, compare_with_limits
from teho.explain.places import NodeGpu, gauges, recorded
from teho.explain.rule import Findings, ProgramContext, Severity, Threshold
from teho.model.missing import Missing, Reason
from teho.model.program import MainProcess
from teho.patterns import lazy_pattern

RANK = 540
SEVERITY = "remark"
THRESHOLDS = {
    "occupancy_percent": Threshold(
        50.0,
        "%",
        "the best practices of the Digital Research Alliance of Canada ask for an occupancy "
        "above 50 %; DCGM's manual says that a kernel with a higher occupancy is not always "
        "faster",
    ),
    "limit_percent": Threshold(
        60.0,
        "%",
        "Nsight Compute (rule SOLBottleneck): if a unit of the GPU reaches 60 % of its peak "
        "rate, this unit limits the speed",
    ),
}

_LIMITING = (
    "gpu_tensor_percent",
    "gpu_fp64_percent",
    "gpu_fp32_percent",
    "gpu_fp16_percent",
    "gpu_integer_percent",
    "gpu_dram_percent",
)
"""If one of these is near its limit, it limits the speed, not the number of warps."""

_NONE_SEEN = Missing(
    Reason.UNRECORDED, "no warps were seen while the GPU was busy: perhaps another job used the GPU"
)


_OWN_KERNELS = lazy_pattern(r"/(numba/cuda|triton|cupy/_core/raw|pycuda)")
"""Files of the libraries with which a Python program compiles kernels of its own."""
_OTHERS = lazy_pattern(r"/torch/_(inductor|dynamo)/|<frozen importlib")
"""Files of `torch.compile`, which uses Triton too, and of imports."""


def judge(context: ProgramContext) -> Findings:
    """Find GPUs with few resident warps; a low occupancy need not be slow.

    Only where the user can change it: in a Python program, if it has kernels of its own.
    """
    if context.mains and not any(map(_has_own_kernels, context.mains)):
        return
    yield from compare_with_limits(
        context,
        [(gpu, _occupancy(context, gpu)) for gpu in context.gpus],
        [Level(Severity.REMARK, lt, "occupancy_percent")],
        sentence="{places} ran only {figures} of the possible number of warps (groups of "
        "threads). Neither arithmetic nor memory was near its limit.",
        label="SM occupancy while the GPU was busy",
        further=lambda gpus: (
            *gauges(gpus, "gpu_sm_active_percent"),
            *gauges(gpus, "gpu_dram_percent"),
        ),
        shown_by="gpu_sm_occupancy_percent",
        shows=lambda gpu, level: context.low_at_work(
            gpu, "gpu_sm_occupancy_percent", context.limit(level.limit)
        ),
        judged_by=["limit_percent"],
        action=(
            "This may not be a problem: a kernel can be fast with few warps. NVIDIA's profiler "
            "says more about a kernel of your own: `ncu --section Occupancy --section "
            "SpeedOfLight CMD` shows what limits the number of warps, and whether this makes the "
            "kernel slow."
        ),
    )


def _has_own_kernels(main: MainProcess) -> bool:
    return any(
        any(_OWN_KERNELS.search(one.file) for one in seen.frames)
        and not any(_OTHERS.search(one.file) for one in seen.frames)
        for seen in main.process.stacks
    )


def _occupancy(context: ProgramContext, gpu: NodeGpu) -> float | None:
    occupancy = context.at_work(gpu, "gpu_sm_occupancy_percent")
    if occupancy == 0:
        # A running kernel has warps. AMD reports only the warps of the job's processes.
        return context.figure(gpu, "SM occupancy", _NONE_SEEN)
    known = (metric for metric in _LIMITING if recorded([gpu], metric))
    means = [context.at_work(gpu, metric) for metric in known]
    at_limit = any(mean is not None and mean >= context.limit("limit_percent") for mean in means)
    return None if at_limit else occupancy
