"""A GPU was idle while another GPU of the run worked."""

from __future__ import annotations

from teho.explain import advice
from teho.explain.places import gauges, name_all, per_place
from teho.explain.rule import Certainty, Findings, RuleContext, Severity, Threshold

RANK = 60
SEVERITY = "critical"
CERTAINTY = Certainty.SURE
THRESHOLDS = {
    "idle_below_percent": Threshold(
        10.0,
        "%",
        "in SageMaker's profiler rules, a GPU that is busy for less than 10 % of the time is idle",
    ),
    "others_busy_percent": Threshold(
        25.0,
        "%",
        "Jobstats, a job report tool, does not report a job if the mean use of its GPUs is above "
        "25 %",
    ),
}
MUTES = ("gpu_held_idle", "gpu_low_use", "communication_bound", "rank_imbalance")
MUTES_BECAUSE = "an idle GPU always has low use, and always differs from the GPUs that work"


def judge(context: RuleContext) -> Findings:
    """Find GPUs that were idle on average, if at least one GPU of the run was busy."""
    if len(context.gpus) < 2:
        return
    means = context.means("gpu_busy_percent")
    limit = context.limit("idle_below_percent")
    working = [pair for pair in means if pair[1] >= context.limit("others_busy_percent")]
    idle = [pair for pair in means if pair[1] < limit]
    if not idle or not working:
        return
    gpus, nodes = [gpu for gpu, _ in idle], len(context.run.nodes)
    fewer = advice.use_gpus(context.scheduler, [gpu for gpu, _ in working], nodes)
    each = advice.process_for_each(context.scheduler, gpus[0].node, nodes)
    yield context.finding(
        Severity.CRITICAL,
        f"{name_all(gpus)} {'was' if len(gpus) == 1 else 'were'} idle while "
        f"{'another GPU' if len(working) == 1 else f'{len(working)} other GPUs'} worked.",
        evidence=(
            *per_place("GPU busy, mean", "%", idle),
            *per_place("other GPUs busy, mean", "%", working),
            *gauges(gpus, "gpu_job_memory_bytes", "max", "memory used by the program on the GPU"),
        ),
        action=f"Start one process per GPU: {each} with DistributedDataParallel. Or {fewer}.",
        subjects=gpus,
        moments=context.moments("gpu_busy_percent", gpus, lambda busy: busy < limit),
    )
