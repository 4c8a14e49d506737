"""Steps of a small model are so short that a GPU has little work."""

from __future__ import annotations

from teho.explain.program_context import in_lines
from teho.explain.rule import Evidence, Findings, ProgramContext, Severity, Threshold, chosen
from teho.model.program import Doing
from teho.units import format_duration

RANK = 250
SEVERITY = "warning"
THRESHOLDS = {
    "step_ms": chosen(
        5.0, "ms", "about 500 kernels can start within 5 ms, if each start takes 10 µs"
    ),
    "model_mib": chosen(10.0, "MiB", "a model of this size fits into the caches of a CPU"),
    "busy_percent": Threshold(
        50.0, "%", "as in the rule gpu_low_use: below this limit, the GPU has too little work"
    ),
}
MUTES = (
    *("waits_for_device", "host_bound", "gpu_launch_bound"),
    *("gpu_low_use", "python_bound", "batch_small"),
)
MUTES_BECAUSE = "this finding says why the GPU has little work: the problem is small"


def judge(context: ProgramContext) -> Findings:
    """Find short steps of a small model on a GPU with little work."""
    for main in context.mains if context.gpus else ():
        progress = main.process.progress[-1] if main.process.progress else None
        size = main.library.get("parameter_bytes")
        pace = progress.steps_per_s if progress else None
        if not pace or not isinstance(size, int) or main.library.get("devices") == ["cpu"]:
            continue
        step_ms = 1000 / pace
        if size > context.limit("model_mib") * 1024**2 or step_ms > context.limit("step_ms"):
            continue
        gpu = context.gpu_use(main)
        if gpu is None or gpu.busy_percent >= context.limit("busy_percent"):
            continue
        context.forget_lacks()
        yield context.finding(
            Severity.WARNING,
            f"A step takes only {format_duration(step_ms / 1000)}, and the GPU is busy "
            f"{gpu.busy_percent:.0f} % of the time{gpu.during}: the problem is too small for a "
            "GPU.",
            evidence=(
                Evidence("mean time of a step", step_ms / 1000, "s"),
                Evidence("size of the model's parameters", float(size), "bytes"),
                gpu.evidence,
                *in_lines(main.lines(Doing.NATIVE, Doing.THREADS, Doing.PYTHON, Doing.DEVICE)),
            ),
            action=(
                "Run the program on a few CPU cores and compare the time: the CPU may be as "
                "fast as the GPU. To use the GPU better, do more work per step: a larger batch, "
                "several models at once, or several steps in one call with `torch.compile` or "
                "CUDA graphs."
            ),
        )
        return
