"""Some of a run's GPUs were idle while the others worked."""

from __future__ import annotations

from teho.explain import advice
from teho.explain.context import NodeGpu, RuleContext, known, name_all, per_place
from teho.explain.rule import Mutes
from teho.model.finding import Abstention, Finding, Severity, Threshold

__all__ = ["KIND", "MUTES", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "gpu_one_idle"
RANK = 60
SAYS = "a GPU was idle while another GPU of the run worked"
SEVERITY = "critical"
THRESHOLDS = {
    "idle_below_percent": Threshold(
        10.0, "%", "SageMaker's profiler rules: a GPU below 10 % is idle"
    ),
    "others_busy_percent": Threshold(25.0, "%", "Jobstats: a mean above 25 % gets no note"),
}
MUTES = Mutes(
    ("gpu_held_idle", "gpu_low_use", "communication_bound", "rank_imbalance"),
    because="idle is less than low, and uneven",
)


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Find GPUs with an idle mean beside at least one busy one, on whatever node of the run."""
    if len(context.gpus) < 2:
        return []
    means = [
        (of, busy.mean) for of in context.gpus if (busy := context.stat(of, "gpu_busy_percent"))
    ]
    working = [pair for pair in means if pair[1] >= context.limit("others_busy_percent")]
    idle = [pair for pair in means if pair[1] < context.limit("idle_below_percent")]
    return context.outcome([_finding(context, idle, working)] if idle and working else [])


def _finding(
    context: RuleContext, idle: list[tuple[NodeGpu, float]], busy: list[tuple[NodeGpu, float]]
) -> Finding:
    resting = [of for of, _ in idle]
    working = [of for of, _ in busy]
    ask = advice.use_gpus(context.scheduler, working, len(context.run.nodes))
    each = advice.process_for_each(context.scheduler, resting[0].node, len(context.run.nodes))
    return context.finding(
        Severity.CRITICAL,
        f"{name_all(resting)} {'was' if len(resting) == 1 else 'were'} idle while "
        f"{'another GPU' if len(working) == 1 else f'{len(working)} other GPUs'} worked.",
        evidence=(
            *per_place("GPU busy, mean", "%", idle),
            *per_place("busy beside it, mean", "%", busy),
            *per_place(
                "memory that the program held there",
                "bytes",
                known(resting, "gpu_job_memory_bytes", "max"),
            ),
        ),
        judged_by=["idle_below_percent", "others_busy_percent"],
        action=f"Start a process for each GPU, {each} with DistributedDataParallel; or {ask}.",
        subjects=resting,
    )
