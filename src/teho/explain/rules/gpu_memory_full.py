"""A GPU's memory was nearly full."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.rules._look import Gpu, Look, known, name_all, per_place, span
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.model.missing import Missing, Reason
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["KIND", "judge"]

KIND = "gpu_memory_full"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Find GPUs whose memory in use came close to all that they have."""
    look = Look(KIND, run, summary, thresholds)
    full: list[tuple[Gpu, float]] = []
    for of in look.gpus:
        used = look.stat(of, "gpu_memory_used_bytes")
        if used is None:
            continue
        total = look.figure(
            of, "GPU memory, total", of.gpu.device.memory_bytes or Missing(Reason.UNSUPPORTED)
        )
        if total is None:
            continue
        percent = 100 * used.max / total
        if percent >= look.limit("used_percent"):
            full.append((of, percent))
    return look.outcome([_finding(look, full)] if full else [])


def _finding(look: Look, full: list[tuple[Gpu, float]]) -> Finding:
    places = [of for of, _ in full]
    return look.finding(
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
            "A larger `batch_size` may not fit. PyTorch tells what it needed, "
            "`torch.cuda.max_memory_allocated()`; JAX and TensorFlow take most of the memory at "
            "the start, unless `XLA_PYTHON_CLIENT_PREALLOCATE=false` or "
            "`TF_FORCE_GPU_ALLOW_GROWTH=true` is set."
        ),
        subjects=places,
    )
