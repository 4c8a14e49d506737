"""The steps are so small that a GPU gains nothing by them."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.causes._watch import Watch
from teho.explain.rules._look import in_lines
from teho.model.finding import Abstention, Evidence, Finding, Severity, Threshold
from teho.model.program import Doing
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["KIND", "judge"]

KIND = "problem_too_small"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Look at short steps of a small model on a GPU that has little to do."""
    watch = Watch(KIND, run, summary, thresholds)
    for main in watch.mains if watch.gpus else ():
        progress = main.process.progress[-1] if main.process.progress else None
        size = main.library.get("parameter_bytes")
        pace = progress.steps_per_s if progress else None
        if not pace or not isinstance(size, int):
            continue
        if main.library.get("devices") == ["cpu"]:
            continue
        step_ms = 1000 / pace
        if size > watch.limit("model_mib") * 1024**2 or step_ms > watch.limit("step_ms"):
            continue
        busy = watch.gpu_busy_percent(main)
        if busy is None or busy >= watch.limit("busy_percent"):
            continue
        return [
            watch.finding(
                Severity.WARNING,
                f"Each step takes {step_ms:.2g} ms, and the GPU is busy for {busy:.0f} % of the "
                "time: there is too little to do for it.",
                evidence=(
                    Evidence("step, mean", step_ms / 1000, "s"),
                    Evidence("model's parameters", float(size), "bytes"),
                    Evidence("GPU busy, mean", busy, "%"),
                    *in_lines(main.lines(Doing.NATIVE, Doing.THREADS, Doing.PYTHON, Doing.DEVICE)),
                ),
                judged_by=["step_ms", "model_mib", "busy_percent"],
                action=(
                    "Run it on a few CPU cores and compare the time: they may be as fast. To use "
                    "the GPU, do more in a step: a larger batch, several models at once, or "
                    "several steps in one call with `torch.compile` or CUDA graphs."
                ),
            )
        ]
    return watch.outcome([])
