"""The bandwidth of a GPU's memory set the pace."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.peaks import peaks_of
from teho.explain.rules._look import Gpu, Look, known, name_all, per_place, span
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["KIND", "judge"]

KIND = "gpu_memory_bound"

_PIPES = (
    ("tensor cores, mean", "gpu_tensor_percent"),
    ("FP32 pipe, mean", "gpu_fp32_percent"),
)


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Remark on GPUs whose memory carried nearly as much as it can: no fault, but the limit."""
    look = Look(KIND, run, summary, thresholds)
    found: list[tuple[Gpu, float]] = []
    for of in look.gpus:
        traffic = look.while_working(of, "gpu_dram_percent")
        if traffic is not None and traffic >= look.limit("bandwidth_percent"):
            found.append((of, traffic))
    return look.outcome([_finding(look, found)] if found else [])


def _finding(look: Look, found: list[tuple[Gpu, float]]) -> Finding:
    places = [of for of, _ in found]
    rates = [
        (of, traffic / 100 * peaks.memory_bytes_per_s)
        for of, traffic in found
        if (peaks := peaks_of(of.gpu.device))
    ]
    its = "its" if len(places) == 1 else "their"
    return look.finding(
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
