"""The tensor cores did nothing while the other pipes computed."""

from __future__ import annotations

from teho.explain.peaks import no_peaks, peaks_of
from teho.explain.places import NodeGpu, name_all, per_column
from teho.explain.rule import Findings, RuleContext, Severity, Threshold, chosen
from teho.explain.wording import span

RANK = 410
SEVERITY = "warning"
THRESHOLDS = {
    "tensor_max_percent": Threshold(
        1.0,
        "%",
        "Kineto, PyTorch's profiler, reports a run if no kernel used the tensor cores, "
        "although at least one kernel could have used them; Teho's limit is 1 % of the time",
    ),
    "arithmetic_percent": chosen(
        25.0,
        "%",
        "element-wise operations, which cannot use tensor cores, usually take less than a "
        "quarter of the time",
    ),
}

_OF_CONVOLUTIONS = (
    "For convolutions, make the number of channels and the width of the images multiples of 8."
)
"""As the workshop of the Alliance says: sizes of matrices are not the sizes of a convolution."""


def judge(context: RuleContext) -> Findings:
    """Find GPUs with tensor cores whose 32-bit and 16-bit pipes did all the arithmetic."""
    found: list[tuple[NodeGpu, float, float]] = []
    for gpu in context.gpus:
        peaks = peaks_of(gpu.gpu.device)
        if peaks is not None and not peaks.has_tensor_cores:
            continue
        tensor = context.at_work(gpu, "gpu_tensor_percent")
        if tensor is None or tensor >= context.limit("tensor_max_percent"):
            continue
        pipes = [context.at_work(gpu, f"gpu_{pipe}_percent") for pipe in ("fp32", "fp16")]
        arithmetic = sum(share for share in pipes if share is not None)
        if None in pipes or arithmetic < context.limit("arithmetic_percent"):
            continue
        if peaks is None:
            context.figure(gpu, "peak of the tensor cores", no_peaks(gpu.gpu.device))
            continue
        found.append((gpu, arithmetic, tensor))
    if not found:
        return
    gpus, on_others, _ = zip(*found, strict=True)
    yield context.finding(
        Severity.WARNING,
        f"The tensor cores (fast units for matrix products) of {name_all(gpus)} did nothing. "
        f"Other arithmetic units of the GPU computed for {span(on_others, '%')} of the time.",
        evidence=per_column(
            found,
            ("activity of the FP32 and FP16 units while the GPU was busy", "%"),
            ("activity of the tensor cores while the GPU was busy", "%"),
        ),
        judged_by=["tensor_max_percent", "arithmetic_percent", "at_work_percent"],
        action=f"{_action(gpus[0])} {_OF_CONVOLUTIONS}",
        subjects=gpus,
    )


def _action(gpu: NodeGpu) -> str:
    peaks = peaks_of(gpu.gpu.device)
    has_tf32 = peaks is not None and "tensor_tf32_tflops" not in peaks.lacks
    way = (
        '`torch.set_float32_matmul_precision("high")` for TF32, or '
        '`torch.autocast("cuda", dtype=torch.bfloat16)` around the forward pass'
        if has_tf32
        else '`torch.autocast("cuda", dtype=torch.float16)` around the forward pass, with '
        "`torch.amp.GradScaler()` around the step"
    )
    return (
        f"If the program computes matrix products or convolutions, use the tensor cores: {way}. "
        "Make the sizes of the matrices multiples of 8. Tensor cores compute with fewer "
        "digits: check that the result is still good."
    )
