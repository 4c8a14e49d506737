"""The run was too short to judge."""

from __future__ import annotations

from teho.explain.kinds import DEEP_GPU, STARVED, UNEVEN
from teho.explain.rule import (
    Certainty,
    Evidence,
    Findings,
    RuleContext,
    Severity,
    Threshold,
    chosen,
)
from teho.units import format_duration

RANK = 570
SEVERITY = "remark"
CERTAINTY = Certainty.SURE
THRESHOLDS = {
    "elapsed_min_s": chosen(60.0, "s", "in the first minute, programs load libraries and data"),
    "gpu_min_s": chosen(
        20.0, "s", "in most programs, the GPU gets its first work within the first 10 s"
    ),
    "samples_min": Threshold(
        10.0,
        "samples",
        "nvbench, a benchmark tool, requires at least 10 samples before it gives a result",
    ),
}
_ABOUT_GPUS = (
    "gpu_one_idle", "gpu_held_idle", *STARVED, *UNEVEN, "gpu_pcie_bound", "gpu_launch_bound",
    "gpu_slow_fp64", "gpu_tensor_cores_idle", *DEEP_GPU, "gpu_memory_bound", "gpu_throttled",
    "gpu_power_capped", "batch_small",
)  # fmt: skip
"""Findings that a run of less than a minute may have; they are only possible."""
MUTES = (
    *_ABOUT_GPUS, "gpu_used_only_at_first", "task_imbalance", "memory_grows",
    "cores_taken_by_others", "serial_program", "cores_unused", "memory_overasked", "cold_cache",
    "steps_uneven",
)  # fmt: skip
MUTES_BECAUSE = "mean values and shares of a short run are not reliable"


def judge(context: RuleContext) -> Findings:
    """Find runs that are too short for means, or that have too few samples.

    In a run of 20 s or more, the findings about GPUs stay, but they are only possible.
    """
    elapsed_s = context.summary.elapsed_s
    samples = max(
        (round(context.samples(node.name, node.covered_s)) for node in context.summary.nodes),
        default=0,
    )
    is_short = elapsed_s < context.limit("elapsed_min_s")
    if not is_short and samples >= context.limit("samples_min"):
        return
    is_log = context.run.imported is not None
    what = (
        f"The {'log covers' if is_log else 'program ran for'} {format_duration(elapsed_s)}"
        if is_short
        else f"In {format_duration(elapsed_s)}, the use of cores and memory was measured only "
        f"{samples} times"
    )
    has_gpus = bool(context.gpus) and (
        elapsed_s >= context.limit("gpu_min_s") and samples >= context.limit("samples_min")
    )
    enough = (
        "For such a short run, findings about GPUs may be wrong, and Teho does not judge the use "
        "of cores and memory."
        if has_gpus
        else "This is not enough to judge how well the program used its resources."
    )
    yield context.finding(
        Severity.REMARK,
        f"{what}. {enough}",
        doubts=_ABOUT_GPUS if has_gpus else (),
        evidence=(
            Evidence("run time", elapsed_s, "s"),
            Evidence("number of samples", float(samples)),
        ),
        action=_of_log(context)
        if is_log
        else _longer(context)
        if is_short
        else _more_samples(context),
    )


def _of_log(context: RuleContext) -> str:
    least = format_duration(context.limit("elapsed_min_s"))
    return (
        f"Log for longer than {least}, with at least {context.limit('samples_min'):g} samples. Or "
        "record the program with `teho run -- CMD`: then the report also has the use of cores and "
        "memory."
    )


def _more_samples(context: RuleContext) -> str:
    """Return the option for at least twice as many samples as are needed."""
    every_s = context.summary.elapsed_s / context.limit("samples_min") / 2
    every = "1s" if every_s >= 1 else f"{max(1, int(10 * every_s)) * 100}ms"
    return f"Sample more often: `teho run --every {every} -- CMD`."


def _longer(context: RuleContext) -> str:
    least = format_duration(context.limit("elapsed_min_s"))
    together = context.scheduler_advice.many_in_one_job
    return (
        f"Let the program run for longer than {least}: then Teho can judge the run. If all your "
        f"runs are this short, put many runs into one job{f': {together}' if together else ''}."
    )
