"""The program held a GPU's memory and computed nothing on it."""

from __future__ import annotations

from teho.explain.context import (
    GpuUse,
    NodeGpu,
    RuleContext,
    ever,
    highest_use,
    known,
    name_all,
    per_place,
)
from teho.explain.rule import STARVED, Mutes
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.model.missing import Missing, Reason

__all__ = ["KIND", "MUTES", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "gpu_held_idle"
RANK = 70
SAYS = "the program used a GPU's memory and computed nothing on it"
SEVERITY = "critical"
THRESHOLDS = {
    "busy_max_percent": Threshold(
        1.0, "%", "as gpu_never_used; a process of the job that sits there is all the difference"
    ),
    "samples_min": Threshold(10.0, "samples", "nvbench: at least 10 samples before a verdict"),
}
MUTES = Mutes(
    (
        *STARVED,
        "communication_bound",
        "rank_imbalance",
        "gpu_sm_low",
        "gpu_low_occupancy",
        "copies_from_pageable_memory",
        "data_fits_gpu",
        "waits_for_device",
        "problem_too_small",
        "batch_small",
    ),
    because="a GPU that the program computes nothing on waits for nothing",
)


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Find GPUs that a process of the job sat on and that nothing ever ran on."""
    held: list[tuple[NodeGpu, GpuUse]] = []
    for of in context.gpus:
        use = context.use(of)
        if (
            use is None
            or not use.was_none(context.limit("busy_max_percent"))
            or not _sat_on(context, of)
        ):
            continue
        samples = use.stat.covered_s / context.period_s(of.node.name)
        if samples >= context.limit("samples_min"):
            held.append((of, use))
        else:
            too_few = Missing(Reason.UNRECORDED, f"only {samples:.0f} samples")
            context.figure(of, use.label, too_few)
    return context.outcome([_finding(context, held)] if held else [])


def _sat_on(context: RuleContext, of: NodeGpu) -> bool:
    """Return whether a process of the job held the GPU; noted where nobody knows."""
    if ever(of, "gpu_job_processes") or ever(of, "gpu_job_memory_bytes"):
        return True
    context.stat(of, "gpu_job_processes")
    return False


def _finding(context: RuleContext, held: list[tuple[NodeGpu, GpuUse]]) -> Finding:
    places = [of for of, _ in held]
    them = "it" if len(places) == 1 else "them"
    return context.finding(
        Severity.CRITICAL,
        f"The program held {name_all(places)} and computed nothing on {them}.",
        evidence=(
            *highest_use(held),
            *per_place(
                "memory that the program held there",
                "bytes",
                known(places, "gpu_job_memory_bytes", "max"),
            ),
        ),
        judged_by=["busy_max_percent"],
        action=(
            "See that the work goes to the GPU, not only its memory: PyTorch needs "
            "`model.to('cuda')` and the batches there as well; TensorFlow and JAX take the memory "
            "of every GPU that they see, and name those they compute on with "
            '`python -c "import jax; print(jax.devices())"`.'
        ),
        subjects=places,
    )
