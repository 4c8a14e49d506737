"""The program used a GPU's memory and computed nothing on this GPU."""

from __future__ import annotations

from teho.explain.context import highest_use
from teho.explain.kinds import DEEP_GPU, GPU_PROGRAM, STARVED, UNEVEN
from teho.explain.places import ever_above_zero, gauges, name_all
from teho.explain.rule import Findings, RuleContext, Severity, Threshold

RANK = 70
SEVERITY = "critical"
THRESHOLDS = {
    "busy_max_percent": Threshold(
        1.0,
        "%",
        "the rule gpu_never_used has the same threshold; that rule is about GPUs without a process "
        "of the job, and this rule is about GPUs with a process of the job",
    ),
    "samples_min": Threshold(
        10.0,
        "samples",
        "nvbench, a benchmark tool, requires at least 10 samples before it gives a result",
    ),
}
MUTES = (*STARVED, *UNEVEN, *DEEP_GPU, *GPU_PROGRAM)
MUTES_BECAUSE = (
    "a GPU without work always has low use, so other findings about its low use are not needed"
)


def judge(context: RuleContext) -> Findings:
    """Find GPUs that have a process of the job, and on which no kernel ever ran."""
    idle = []
    limit = context.limit("busy_max_percent")
    for gpu in context.gpus:
        use = context.use(gpu)
        if use is None or not use.is_none(limit):
            continue
        if not ever_above_zero(gpu, "gpu_job_processes", "gpu_job_memory_bytes"):
            # Notes if it is not known.
            context.stat(gpu, "gpu_job_processes")
        elif context.has_enough_samples(gpu, use):
            idle.append((gpu, use))
    if not idle:
        return
    gpus = [gpu for gpu, _ in idle]
    yield context.finding(
        Severity.CRITICAL,
        f"The program used memory of {name_all(gpus)}, but computed nothing on "
        f"{'this GPU' if len(gpus) == 1 else 'these GPUs'}.",
        evidence=(
            *highest_use(idle),
            *gauges(gpus, "gpu_job_memory_bytes", "max", "memory used by the program on the GPU"),
        ),
        judged_by=["busy_max_percent"],
        action=(
            "So far, the program only uses the GPU's memory. Move the work to the GPU: in PyTorch, "
            "use `model.to('cuda')` for the model, and `x.to('cuda')` for each batch. TensorFlow "
            "and JAX also take the memory of GPUs on which they do not compute. "
            '`python -c "import jax; print(jax.devices())"` prints the GPUs that JAX can use.'
        ),
        subjects=gpus,
        moments=context.moments("gpu_busy_percent", gpus, lambda busy: busy < limit),
    )
