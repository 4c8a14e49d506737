"""A GPU always had a kernel running, and kernels too small to fill it."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.rules._look import Gpu, Look, known, name_all, per_place, span
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["KIND", "judge"]

KIND = "gpu_launch_bound"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Find GPUs that were busy with few of their multiprocessors, most of the time.

    Only the launches themselves would prove it: what is seen is that kernels follow each other
    and that none of them fills the GPU.
    """
    look = Look(KIND, run, summary, thresholds)
    found: list[tuple[Gpu, float]] = []
    for of in look.gpus:
        share = _share(look, of)
        if share is not None and share > look.limit("time_percent"):
            found.append((of, share))
    return look.outcome([_finding(look, found)] if found else [])


def _share(look: Look, of: Gpu) -> float | None:
    """Return the share of the recorded bins, in %, that were busy with few multiprocessors."""
    busy = look.series(of, "gpu_busy_percent")
    if busy is None:
        return None
    least, below = look.limit("busy_percent"), look.limit("sm_active_percent")
    seen = [share for share in busy if share is not None]
    if 100 * sum(share >= least for share in seen) <= look.limit("time_percent") * len(seen):
        return None
    active = look.series(of, "gpu_sm_active_percent")
    verdicts = [
        share >= least and part < below
        for share, part in zip(busy, active or (), strict=False)
        if share is not None and part is not None
    ]
    return 100 * sum(verdicts) / len(verdicts) if verdicts else None


def _finding(look: Look, found: list[tuple[Gpu, float]]) -> Finding:
    places = [of for of, _ in found]
    active = known(places, "gpu_sm_active_percent", "mean")
    waits = (
        " A GPU that waits for others in a communication kernel looks the same: time a step on one "
        "GPU."
        if len(look.gpus) > 1
        else ""
    )
    return look.finding(
        Severity.WARNING,
        f"{name_all(places)} {'was' if len(places) == 1 else 'were'} busy with small kernels: "
        f"{span([mean for _, mean in active], '%')} of the multiprocessors had work.",
        evidence=(
            *per_place("time busy with few multiprocessors", "%", found),
            *per_place("GPU busy, mean", "%", known(places, "gpu_busy_percent", "mean")),
            *per_place("SM activity, mean", "%", active),
        ),
        judged_by=["time_percent", "busy_percent", "sm_active_percent"],
        action=(
            "Give each kernel more to do, with a larger `batch_size`, and launch fewer of them: "
            '`torch.compile(model, mode="reduce-overhead")` joins kernels and replays them as a '
            f"CUDA graph; `jax.jit` around the whole step does the same for JAX.{waits}"
        ),
        subjects=places,
    )
