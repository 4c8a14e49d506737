"""A GPU that is slow at 64-bit arithmetic computed with 64-bit numbers."""

from __future__ import annotations

from teho.explain.peaks import no_peaks, peaks_of
from teho.explain.places import NodeGpu, name_all, per_column
from teho.explain.rule import Findings, RuleContext, Severity, chosen
from teho.explain.wording import span
from teho.model.missing import Missing
from teho.model.summary import Figure

RANK = 400
SEVERITY = "warning"
THRESHOLDS = {
    "fp64_percent": chosen(
        10.0,
        "%",
        "if a program has only a few 64-bit numbers, computing with these numbers needs less "
        "than a tenth of the time",
    ),
    "rate_percent": chosen(
        25.0,
        "%",
        "GPUs that are made for 64-bit numbers compute with these numbers at about half of their "
        "32-bit speed, or faster. Other GPUs compute with these numbers at about 3 % of their "
        "32-bit speed, or slower (file peaks.toml)",
    ),
}


def judge(context: RuleContext) -> Findings:
    """Find GPUs whose 64-bit pipe was at work and is much slower than the 32-bit pipe."""
    slow: list[tuple[NodeGpu, float, float]] = []
    for gpu in context.gpus:
        ratio = _ratio_percent(gpu)
        if not isinstance(ratio, Missing) and ratio >= context.limit("rate_percent"):
            continue
        share = context.at_work(gpu, "gpu_fp64_percent")
        if share is None or share < context.limit("fp64_percent"):
            continue
        rate = context.figure(gpu, "rate of 64-bit arithmetic", ratio)
        if rate is not None:
            slow.append((gpu, share, rate))
    if not slow:
        return
    gpus, shares, rates = zip(*slow, strict=True)
    their = "Its" if len(gpus) == 1 else "Their"
    yield context.finding(
        Severity.WARNING,
        f"{name_all(gpus)} computed with 64-bit numbers for {span(shares, '%')} of the time. "
        f"{their} speed with 64-bit numbers is only {span(rates, '%')} of the speed with 32-bit "
        "numbers.",
        evidence=per_column(
            slow,
            ("activity of the FP64 units while the GPU was busy", "%"),
            ("speed with 64-bit numbers, as a share of the speed with 32-bit numbers", "%"),
        ),
        judged_by=["fp64_percent", "rate_percent", "at_work_percent"],
        action=(
            "If 32 bits are enough, make arrays with 32 bits (NumPy's default is 64 bits): "
            "`cupy.asarray(x, dtype=cupy.float32)`, `torch.as_tensor(x, dtype=torch.float32)`. "
            "If you need 64 bits, use a GPU made for 64 bits (V100, A100, H100, MI250X): such a "
            "GPU is many times faster."
        ),
        subjects=gpus,
    )


def _ratio_percent(gpu: NodeGpu) -> Figure:
    """Return the 64-bit rate as a share of the 32-bit rate."""
    peaks = peaks_of(gpu.gpu.device)
    if peaks is None or peaks.fp64_tflops is None or peaks.fp32_tflops is None:
        return no_peaks(gpu.gpu.device)
    return 100 * peaks.fp64_tflops / peaks.fp32_tflops
