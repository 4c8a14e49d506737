"""A GPU that is poor at 64-bit arithmetic was made to do it."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.peaks import Peaks, no_peaks, peaks_of
from teho.explain.rules._look import Gpu, Look, name_all, per_place, span
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.model.missing import Missing
from teho.model.run import Run
from teho.model.summary import Figure, Summary

__all__ = ["KIND", "judge"]

KIND = "gpu_slow_fp64"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Find GPUs whose 64-bit pipe was at work and is far slower than the 32-bit one."""
    look = Look(KIND, run, summary, thresholds)
    found: list[tuple[Gpu, float, float]] = []
    for of in look.gpus:
        ratio = _ratio_percent(of, peaks_of(of.gpu.device))
        if not isinstance(ratio, Missing) and ratio >= look.limit("rate_percent"):
            continue
        share = look.while_working(of, "gpu_fp64_percent")
        if share is None or share < look.limit("fp64_percent"):
            continue
        rate = look.figure(of, "rate of 64-bit arithmetic", ratio)
        if rate is not None:
            found.append((of, share, rate))
    return look.outcome([_finding(look, found)] if found else [])


def _ratio_percent(of: Gpu, peaks: Peaks | None) -> Figure:
    """Return the 64-bit rate as a share of the 32-bit one."""
    if peaks is None or peaks.fp64_tflops is None or peaks.fp32_tflops is None:
        return no_peaks(of.gpu.device)
    return 100 * peaks.fp64_tflops / peaks.fp32_tflops


def _finding(look: Look, found: list[tuple[Gpu, float, float]]) -> Finding:
    places = [of for of, _, _ in found]
    rates = [(of, rate) for of, _, rate in found]
    poor = "is a GPU that does" if len(places) == 1 else "are GPUs that do"
    return look.finding(
        Severity.WARNING,
        f"{name_all(places)} calculated in 64 bit {span([share for _, share, _ in found], '%')} of "
        f"the time, and {poor} so at {span([rate for _, rate in rates], '%')} of the 32-bit rate.",
        evidence=(
            *per_place("FP64 pipe while at work", "%", [(of, share) for of, share, _ in found]),
            *per_place("64-bit rate, of the 32-bit one", "%", rates),
        ),
        judged_by=["fp64_percent", "rate_percent", "at_work_percent"],
        action=(
            "If 64 bit is not meant, say so where arrays are made: NumPy's are 64 bit by default, "
            "`cupy.asarray(x, dtype=cupy.float32)`, `torch.as_tensor(x, dtype=torch.float32)`. If "
            "it is meant, a GPU made for it (V100, A100, H100, MI250X) does it many times faster."
        ),
        subjects=places,
    )
