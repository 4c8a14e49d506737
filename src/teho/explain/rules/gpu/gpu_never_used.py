"""A GPU was never busy, and Teho saw no process of the job on this GPU."""

from __future__ import annotations

from teho.explain import advice
from teho.explain.context import highest_use
from teho.explain.kinds import DEEP_GPU, GPU_PROGRAM, STARVED, UNEVEN
from teho.explain.places import NodeGpu, ever_above_zero, name_all
from teho.explain.rule import Certainty, Findings, RuleContext, Severity, Threshold
from teho.model.summary import PartlyKnown

RANK = 50
SEVERITY = "critical"
CERTAINTY = Certainty.SURE
THRESHOLDS = {
    "busy_max_percent": Threshold(
        1.0,
        "%",
        "Jobstats, a job report tool, reports a GPU only if its use is exactly 0 %. Teho also "
        "reports a GPU with a use below 1 %, because another user may have used it for a moment",
    ),
    "samples_min": Threshold(
        10.0,
        "samples",
        "nvbench, a benchmark tool, requires at least 10 samples before it gives a result",
    ),
}
MUTES = (
    "gpu_used_only_at_first", "gpu_one_idle", "gpu_held_idle",
    *STARVED, *UNEVEN, *DEEP_GPU, *GPU_PROGRAM,
)  # fmt: skip
MUTES_BECAUSE = (
    "a GPU that was never used always has low use, so other findings about its low use are not "
    "needed"
)


def judge(context: RuleContext) -> Findings:
    """Find GPUs on which no kernel ever ran, and that had no process of the job.

    Other rules judge GPUs that had a process of the job: TensorFlow takes the memory of all GPUs.
    """
    limit = context.limit("busy_max_percent")
    unused = [
        (gpu, use)
        for gpu in context.gpus
        if not _has_mean_of_use(gpu, limit)
        and (use := context.use(gpu))
        and context.has_enough_samples(gpu, use)
        and use.is_none(limit)
        and not ever_above_zero(gpu, "gpu_job_processes", "gpu_job_memory_bytes")
    ]
    if unused:
        gpus = [gpu for gpu, _ in unused]
        yield context.finding(
            Severity.CRITICAL,
            f"{name_all(gpus)} {'was' if len(gpus) == 1 else 'were'} never used.",
            evidence=highest_use(unused),
            judged_by=["busy_max_percent"],
            action=_action(context, gpus),
            subjects=gpus,
            moments=context.moments("gpu_busy_percent", gpus, lambda busy: busy < limit),
        )


def _has_mean_of_use(gpu: NodeGpu, limit: float) -> bool:
    """Return whether only the mean use is known, and shows that the GPU was used."""
    busy = gpu.gpu.stats.get("gpu_busy_percent")
    return isinstance(busy, PartlyKnown) and busy.mean is not None and busy.mean >= limit


def _action(context: RuleContext, unused: list[NodeGpu]) -> str:
    if context.run.may_have_other_gpus:
        return _of_log(context)
    keys = {gpu.key for gpu in unused}
    used = [gpu for gpu in context.gpus if gpu.key not in keys]
    if not used:
        otherwise = "do not request one" if context.scheduler else "change nothing"
        return (
            "Check whether the program finds a GPU: "
            '`python -c "import torch; print(torch.cuda.is_available())"`. Then check whether the '
            f"program moves its work to the GPU: `model.to('cuda')`. If the program needs no "
            f"GPU, {otherwise}."
        )
    nodes = len(context.run.nodes)
    fewer = advice.use_gpus(context.scheduler, used, nodes)
    each = advice.process_for_each(context.scheduler, unused[0].node, nodes)
    return (
        f"Leave out the unused GPUs: {fewer}. Or use all GPUs, with one process per "
        f"GPU: {each} and DistributedDataParallel."
    )


def _of_log(context: RuleContext) -> str:
    several = (
        " If the GPU was not part of your job, ignore this finding."
        if len(context.gpus) > 1
        else ""
    )
    return (
        "Check whether the program finds the GPU: "
        '`python -c "import torch; print(torch.cuda.device_count())"`. Then request only as many '
        f"GPUs as the program uses.{several}"
    )
