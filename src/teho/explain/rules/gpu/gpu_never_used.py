"""A GPU was held and never used."""

from __future__ import annotations

from teho.explain import advice
from teho.explain.context import GpuUse, NodeGpu, RuleContext, ever, highest_use, name_all
from teho.explain.rule import STARVED, Mutes
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.model.missing import Missing, Reason

__all__ = ["KIND", "MUTES", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "gpu_never_used"
RANK = 50
SAYS = "nothing ran on a GPU, and no process of the job was seen on it"
SEVERITY = "critical"
THRESHOLDS = {
    "busy_max_percent": Threshold(
        1.0,
        "%",
        "Jobstats marks a GPU at exactly 0 %; Teho allows for less than 1 % of others' work",
    ),
    "samples_min": Threshold(10.0, "samples", "nvbench: at least 10 samples before a verdict"),
}
MUTES = Mutes(
    (
        "gpu_used_only_at_first",
        "gpu_one_idle",
        "gpu_held_idle",
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
    because="never is less than low, and a GPU that the program does not use waits for nothing",
)


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Find GPUs that nothing ever ran on and that no process of the job sat on.

    A process on an idle GPU (TensorFlow takes the memory of all) leaves the case to
    the rules of GPUs that are used too little.
    """
    unused: list[tuple[NodeGpu, GpuUse]] = []
    for of in context.gpus:
        use = context.use(of)
        if use is None or not _enough_samples(context, of, use):
            continue
        if use.was_none(context.limit("busy_max_percent")) and not _held_by_job(of):
            unused.append((of, use))
    return context.outcome([_finding(context, unused)] if unused else [])


def _held_by_job(of: NodeGpu) -> bool:
    return ever(of, "gpu_job_processes") or ever(of, "gpu_job_memory_bytes")


def _enough_samples(context: RuleContext, of: NodeGpu, use: GpuUse) -> bool:
    samples = use.stat.covered_s / context.period_s(of.node.name)
    if samples >= context.limit("samples_min"):
        return True
    too_few = Missing(Reason.UNRECORDED, f"only {samples:.0f} samples")
    return context.figure(of, use.label, too_few) is not None


def _finding(context: RuleContext, unused: list[tuple[NodeGpu, GpuUse]]) -> Finding:
    idle = [of for of, _ in unused]
    return context.finding(
        Severity.CRITICAL,
        f"{name_all(idle)} {'was' if len(idle) == 1 else 'were'} never used.",
        evidence=highest_use(unused),
        judged_by=["busy_max_percent"],
        action=_action(context, idle),
        subjects=idle,
    )


def _action(context: RuleContext, idle: list[NodeGpu]) -> str:
    scheduler = context.scheduler
    names = {of.key for of in idle}
    used = [of for of in context.gpus if of.key not in names]
    if not used:
        ask = "do not ask for one" if scheduler else "nothing need be changed"
        return (
            "Check that the program finds a GPU: "
            '`python -c "import torch; print(torch.cuda.is_available())"`, and that it moves its '
            f"work there, as `model.to('cuda')`. If it is not meant to use a GPU, {ask}."
        )
    asked = advice.use_gpus(scheduler, used, len(context.run.nodes))
    each = advice.process_for_each(scheduler, idle[0].node, len(context.run.nodes))
    return (
        f"Request only the GPUs that you use: {asked}. Or use all of them, with one process per "
        f"GPU: {each} and DistributedDataParallel."
    )
