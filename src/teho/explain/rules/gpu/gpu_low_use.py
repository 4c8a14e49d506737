"""A GPU was busy for too little of the time."""

from __future__ import annotations

from operator import le, lt

from teho.explain import advice
from teho.explain.gpu_words import more_work
from teho.explain.limits import Level, compare_with_limits
from teho.explain.places import NodeGpu, gauges
from teho.explain.program_context import GpuUse
from teho.explain.rule import Findings, ProgramContext, Severity, Threshold, chosen

RANK = 320
SEVERITY = "critical, warning, remark"
THRESHOLDS = {
    "busy_percent": Threshold(
        50.0,
        "%",
        "CSC, guide to GPU-accelerated machine learning: the use of a GPU is too low if it "
        "is under, for example, 50 % all the time",
    ),
    "warning_percent": Threshold(
        25.0,
        "%",
        "Jobstats, a job report tool, reports a job if the mean use of its GPUs is 25 % or less",
    ),
    "critical_percent": Threshold(
        15.0,
        "%",
        "Jobstats, a job report tool, shows a job in red if the mean use of its GPUs is 15 % or "
        "less",
    ),
    "busy_during_steps_percent": chosen(
        80.0,
        "%",
        "the same value as the threshold good_use.gpu_busy_percent: from this limit on, the GPU is "
        "used well while the program makes steps",
    ),
    "start_idle_s": chosen(
        60.0,
        "s",
        "a GPU has no work while a program starts; if the start takes less time, only the use of "
        "the GPU afterwards counts",
    ),
}


def judge(context: ProgramContext) -> Findings:
    """Find GPUs with a low mean; Jobstats and CSC use the same levels.

    In a short run of one process with one GPU, imports and the start of the program would lower the
    mean: then the mean is that of the time in which the program worked with the GPU.
    """
    use = _use_without_start(context)
    during = use.during if use else ""
    yield from compare_with_limits(
        context,
        [(context.gpus[0], use.busy_percent)] if use else context.means("gpu_busy_percent"),
        [
            Level(Severity.CRITICAL, le, "critical_percent"),
            Level(Severity.WARNING, le, "warning_percent"),
            Level(Severity.REMARK, lt, "busy_percent"),
        ],
        sentence=f"{{places}} {{was}} busy only {{figures}} of the time{during}.",
        label=f"GPU busy{during or ', mean'}",
        further=lambda gpus: gauges(gpus, "gpu_busy_percent", "max"),
        action=lambda gpus: _action(context, gpus[0]),
        shown_by="gpu_busy_percent",
    )


def _use_without_start(context: ProgramContext) -> GpuUse | None:
    """Return the use of a GPU without a short start of the program; None: the whole run counts."""
    if len(context.gpus) != 1 or len(context.mains) != 1:
        return None
    use, mean = context.gpu_use(context.mains[0]), context.mean(context.gpus[0], "gpu_busy_percent")
    if use is None or not use.during or mean is None:
        return None
    idle_s = (1 - mean / 100) * context.summary.elapsed_s
    outside_s = idle_s - use.idle_percent / 100 * context.mains[0].process.wall_s
    return use if outside_s < context.limit("start_idle_s") else None


def _action(context: ProgramContext, gpu: NodeGpu) -> str:
    # An imported log does not have the cores.
    cores = gpu.node.cores
    workers = str(advice.loader_workers(cores, len(gpu.node.gpus))) if cores else "CORES_PER_GPU"
    fewer = " or fewer GPUs" if len(context.gpus) > 1 else ""
    uses = [use for main in context.mains if (use := context.gpu_use(main)) and use.during]
    if uses and all(use.busy_percent >= context.limit("busy_during_steps_percent") for use in uses):
        return (
            "The GPU is busy while the program makes steps, but not at the start and at the end "
            "of the program. Let one job do more steps, or shorten the start."
        )
    waits = any(context.is_loss(main.feed.wait_s, main) for main in context.mains)
    loading = (
        f"Load data in parallel: `DataLoader(num_workers={workers}, pin_memory=True, "
        "persistent_workers=True)`. "
    )
    return (
        f"{loading if waits or not context.mains else ''}{more_work(context, is_compiled=False)} "
        f"If the problem is too small for this GPU, measure a run on CPU cores{fewer}. Such a run "
        "may cost less."
    )
