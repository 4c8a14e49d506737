"""A GPU calculated a lot, and its tensor cores did nothing."""

from __future__ import annotations

from teho.explain.context import NodeGpu, RuleContext, name_all, per_place, span
from teho.explain.peaks import no_peaks, peaks_of
from teho.model.finding import Abstention, Finding, Severity, Threshold

__all__ = ["KIND", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "gpu_tensor_cores_idle"
RANK = 410
SAYS = "the tensor cores did nothing while the other pipes calculated"
SEVERITY = "warning"
THRESHOLDS = {
    "tensor_max_percent": Threshold(
        1.0,
        "%",
        "Kineto: no kernel on tensor cores, though some could be; Teho allows for less than 1 %",
    ),
    "arithmetic_percent": Threshold(
        25.0,
        "%",
        "Teho's own choice: a quarter of the time in FP32 and FP16 is more than element-wise work",
    ),
}


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Find GPUs with tensor cores whose 32-bit and 16-bit pipes did all the arithmetic."""
    found: list[tuple[NodeGpu, float, float]] = []
    for of in context.gpus:
        peaks = peaks_of(of.gpu.device)
        if peaks is not None and not peaks.has_tensor_cores:
            continue
        tensor = context.while_working(of, "gpu_tensor_percent")
        if tensor is None or tensor >= context.limit("tensor_max_percent"):
            continue
        pipes = [context.while_working(of, f"gpu_{pipe}_percent") for pipe in ("fp32", "fp16")]
        arithmetic = sum(share for share in pipes if share is not None)
        if None in pipes or arithmetic < context.limit("arithmetic_percent"):
            continue
        if peaks is None:
            context.figure(of, "whether there are tensor cores", no_peaks(of.gpu.device))
        else:
            found.append((of, tensor, arithmetic))
    return context.outcome([_finding(context, found)] if found else [])


def _finding(context: RuleContext, found: list[tuple[NodeGpu, float, float]]) -> Finding:
    places = [of for of, _, _ in found]
    arithmetic = [(of, share) for of, _, share in found]
    did = "has" if len(places) == 1 else "have"
    return context.finding(
        Severity.WARNING,
        f"{name_all(places)} {did} tensor cores that did nothing, while the other pipes calculated "
        f"{span([share for _, share in arithmetic], '%')} of the time.",
        evidence=(
            *per_place("FP32 and FP16 pipes while at work", "%", arithmetic),
            *per_place("tensor cores while at work", "%", [(of, share) for of, share, _ in found]),
        ),
        judged_by=["tensor_max_percent", "arithmetic_percent", "at_work_percent"],
        action=_action(places[0]),
        subjects=places,
    )


def _action(of: NodeGpu) -> str:
    peaks = peaks_of(of.gpu.device)
    has_tf32 = peaks is not None and "tensor_tf32_tflops" not in peaks.lacks
    way = (
        '`torch.set_float32_matmul_precision("high")` for TF32, or '
        '`torch.autocast("cuda", dtype=torch.bfloat16)` around the forward pass'
        if has_tf32
        else '`torch.autocast("cuda", dtype=torch.float16)` around the forward pass, with '
        "`torch.amp.GradScaler()` around the step"
    )
    return (
        f"If the program multiplies matrices or convolves, let it use them: {way}, with sizes that "
        "are multiples of 8. They calculate with fewer digits: see that the result stays good."
    )
