"""The run was too short to judge how well it used what it had."""

from __future__ import annotations

from teho.explain.context import RuleContext
from teho.explain.rule import STARVED, Mutes
from teho.model.finding import Abstention, Evidence, Finding, Severity, Threshold
from teho.units import format_duration

__all__ = ["KIND", "MUTES", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "job_too_short"
RANK = 570
SAYS = "the run was too short to judge"
SEVERITY = "remark"
THRESHOLDS = {
    "elapsed_min_s": Threshold(
        60.0, "s", "Teho's own choice: within the first minute programs load libraries and data"
    ),
    "samples_min": Threshold(10.0, "samples", "nvbench: at least 10 samples before a verdict"),
}
MUTES = Mutes(
    (
        "gpu_one_idle",
        "gpu_held_idle",
        "gpu_used_only_at_first",
        *STARVED,
        "communication_bound",
        "rank_imbalance",
        "task_imbalance",
        "gpu_pcie_bound",
        "gpu_launch_bound",
        "gpu_slow_fp64",
        "gpu_tensor_cores_idle",
        "gpu_sm_low",
        "memory_grows",
        "cores_taken_by_others",
        "serial_program",
        "cores_unused",
        "memory_overasked",
        "gpu_throttled",
        "gpu_power_capped",
        "gpu_memory_bound",
        "gpu_low_occupancy",
        "batch_small",
        "cold_cache",
        "steps_uneven",
    ),
    because="means and shares over a short run are chance",
)


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Return whether means over this run mean anything."""
    samples = max(
        (_samples(context, node.name, node.covered_s) for node in context.summary.nodes), default=0
    )
    brief = context.summary.elapsed_s < context.limit("elapsed_min_s")
    if not brief and samples >= context.limit("samples_min"):
        return []
    what = (
        f"The program ran for {format_duration(context.summary.elapsed_s)}"
        if brief
        else f"Only {samples} samples were taken in {format_duration(context.summary.elapsed_s)}"
    )
    return context.outcome(
        [
            context.finding(
                Severity.REMARK,
                f"{what}, too little to judge how well it used what it had.",
                evidence=(
                    Evidence("wall time", context.summary.elapsed_s, "s"),
                    Evidence("samples", float(samples)),
                ),
                judged_by=["elapsed_min_s", "samples_min"],
                action=_action(context, brief=brief),
            )
        ]
    )


def _samples(context: RuleContext, node_name: str, covered_s: float) -> int:
    return round(covered_s / context.period_s(node_name))


def _action(context: RuleContext, *, brief: bool) -> str:
    if not brief:
        return "Sample more often: `teho run --every 1s -- CMD`."
    least = format_duration(context.limit("elapsed_min_s"))
    together = context.scheduler_advice.many_in_one_job
    return (
        f"To judge it, let it work for longer than {least}. If all your runs are this short, put "
        f"many into one job{f': {together}' if together else ''}."
    )
