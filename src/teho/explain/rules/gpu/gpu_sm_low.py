"""A GPU was busy, but many of its multiprocessors had no work."""

from __future__ import annotations

from operator import lt

from teho.explain.gpu_words import kernels_of, more_work
from teho.explain.limits import Level, compare_with_limits
from teho.explain.places import NodeGpu, gauges, recorded
from teho.explain.rule import Findings, RuleContext, Severity, Threshold

RANK = 420
SEVERITY = "warning, remark"
THRESHOLDS = {
    "sm_active_percent": Threshold(
        80.0,
        "%",
        "the best practices of the Digital Research Alliance of Canada and DCGM's manual ask "
        "for an SM activity above 80 %",
    ),
    "warning_percent": Threshold(
        50.0,
        "%",
        "DCGM's manual: if the SM activity is below 50 %, the program probably uses the GPU badly",
    ),
}
MUTES = ("gpu_low_occupancy",)
MUTES_BECAUSE = "a GPU whose multiprocessors are idle always has a low occupancy"


def judge(context: RuleContext) -> Findings:
    """Find GPUs with multiprocessors without work while the GPU counted as busy."""
    yield from compare_with_limits(
        context,
        [(gpu, context.at_work(gpu, "gpu_sm_active_percent")) for gpu in context.gpus],
        [
            Level(Severity.WARNING, lt, "warning_percent"),
            Level(Severity.REMARK, lt, "sm_active_percent"),
        ],
        sentence=lambda gpus: (
            "{places} used only {figures} of {its} multiprocessors (computing "
            f"units){_when(gpus, ' while busy')}."
        ),
        label=lambda gpus: f"SM activity{_when(gpus, ' while the GPU was busy')}",
        further=lambda gpus: gauges(gpus, "gpu_busy_percent"),
        shown_by="gpu_sm_active_percent",
        shows=lambda gpu, level: context.low_at_work(
            gpu, "gpu_sm_active_percent", context.limit(level.limit)
        ),
        judged_by=["at_work_percent"],
        action=lambda gpus: _action(context, gpus),
    )


def _when(gpus: list[NodeGpu], words: str) -> str:
    """Return when the activity was measured: without a busy share, over the whole run."""
    return words if recorded(gpus, "gpu_busy_percent") else ""


def _action(context: RuleContext, gpus: list[NodeGpu]) -> str:
    is_slice = all(gpu.gpu.device.parent_id for gpu in gpus)
    few = kernels_of(context)
    active = [context.at_work(gpu, "gpu_sm_active_percent") for gpu in gpus]
    is_low = all(one is not None and one < context.limit("warning_percent") for one in active)
    if few and is_low:
        few = f"The kernels have too few threads, or they run one after the other. {few}"
    this, smaller = ("slice", "slice") if is_slice else ("GPU", "GPU (or a MIG slice)")
    return (
        f"{few}{more_work(context)} If the program cannot fill this {this}, use a smaller "
        f"{smaller}: the same work may cost less there."
    )
