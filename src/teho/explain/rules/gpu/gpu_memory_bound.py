"""The bandwidth of a GPU's memory set the pace."""

from __future__ import annotations

from teho.explain.context import NodeGpu, RuleContext, known, name_all, per_place, span
from teho.explain.peaks import peaks_of
from teho.model.finding import Abstention, Finding, Severity, Threshold

__all__ = ["KIND", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "gpu_memory_bound"
RANK = 530
SAYS = "the bandwidth of a GPU's memory limited its speed"
SEVERITY = "remark"
THRESHOLDS = {
    "bandwidth_percent": Threshold(
        60.0,
        "%",
        "Nsight Compute, rule SOLBottleneck: 60 %; DCGM's manual: 80 % is the most in practice",
    ),
}

_PIPES = (
    ("tensor cores, mean", "gpu_tensor_percent"),
    ("FP32 pipe, mean", "gpu_fp32_percent"),
)


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Remark on GPUs whose memory carried nearly as much as it can: no fault, but the limit."""
    found: list[tuple[NodeGpu, float]] = []
    for of in context.gpus:
        traffic = context.while_working(of, "gpu_dram_percent")
        if traffic is not None and traffic >= context.limit("bandwidth_percent"):
            found.append((of, traffic))
    return context.outcome([_finding(context, found)] if found else [])


def _finding(context: RuleContext, found: list[tuple[NodeGpu, float]]) -> Finding:
    places = [of for of, _ in found]
    rates = [
        (of, traffic / 100 * peaks.memory_bytes_per_s)
        for of, traffic in found
        if (peaks := peaks_of(of.gpu.device))
    ]
    its = "its" if len(places) == 1 else "their"
    return context.finding(
        Severity.REMARK,
        f"{name_all(places)} used {span([traffic for _, traffic in found], '%')} of {its} memory "
        "bandwidth: memory sets the pace, not arithmetic.",
        evidence=(
            *per_place("memory bandwidth while at work", "%", found),
            *(per_place("that is", "B/s", rates) if rates else ()),
            *(
                item
                for label, metric in _PIPES
                if (means := known(places, metric, "mean"))
                for item in per_place(label, "%", means)
            ),
        ),
        judged_by=["bandwidth_percent", "at_work_percent"],
        action=(
            "Nothing, where the program must read that much. Otherwise move fewer bytes for each "
            "operation: `torch.compile(model)` joins steps that each read and write everything, "
            "`dtype=torch.bfloat16` halves the bytes, and a larger `batch_size` uses the weights "
            "more often. More arithmetic units would not help; a GPU with faster memory would."
        ),
        subjects=places,
    )
