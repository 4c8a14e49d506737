"""The bandwidth of a GPU's memory limited the speed of the GPU."""

from __future__ import annotations

from operator import ge

from teho.explain.limits import Level, compare_with_limits
from teho.explain.peaks import peaks_of
from teho.explain.places import NodeGpu, gauges, per_place
from teho.explain.rule import Evidence, Findings, RuleContext, Severity, Threshold

RANK = 530
SEVERITY = "remark"
THRESHOLDS = {
    "bandwidth_percent": Threshold(
        60.0,
        "%",
        "Nsight Compute (rule SOLBottleneck): if the memory reaches 60 % of its peak bandwidth, "
        "the memory limits the speed; DCGM's manual: in practice, programs reach at most 80 % of "
        "the peak bandwidth",
    ),
}


def judge(context: RuleContext) -> Findings:
    """Find GPUs with nearly the highest possible memory traffic: not a fault, but the limit."""
    yield from compare_with_limits(
        context,
        [(gpu, context.at_work(gpu, "gpu_dram_percent")) for gpu in context.gpus],
        [Level(Severity.REMARK, ge, "bandwidth_percent")],
        sentence="{places} used {figures} of {its} memory bandwidth. So the speed is limited by "
        "memory, not by arithmetic.",
        label="used share of the memory bandwidth while the GPU was busy",
        further=lambda gpus: _evidence(context, gpus),
        shown_by="gpu_dram_percent",
        judged_by=["at_work_percent"],
        action=(
            "To be faster, the program has to read and write fewer bytes. `torch.compile(model)` "
            "joins operations, so that the data are read and written less often. "
            "`dtype=torch.bfloat16` halves the number of bytes of 32-bit numbers. With a larger "
            "`batch_size`, the GPU reads the weights less often for the same number of samples. "
            "If the program needs all these bytes, only a GPU with faster memory would be faster."
        ),
    )


def _evidence(context: RuleContext, gpus: list[NodeGpu]) -> tuple[Evidence, ...]:
    rates = [
        (gpu, traffic / 100 * peaks.memory_bytes_per_s)
        for gpu in gpus
        if (peaks := peaks_of(gpu.gpu.device))
        and (traffic := context.at_work(gpu, "gpu_dram_percent"))
    ]
    return (
        *per_place("memory traffic while the GPU was busy", "B/s", rates),
        *gauges(gpus, "gpu_tensor_percent", label="activity of the tensor cores, mean"),
        *gauges(gpus, "gpu_fp32_percent", label="activity of the FP32 units, mean"),
    )
