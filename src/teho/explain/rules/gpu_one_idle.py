"""Some of a run's GPUs were idle while the others worked."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.rules import _advice
from teho.explain.rules._look import Gpu, Look, known, name_all, per_place
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["KIND", "judge"]

KIND = "gpu_one_idle"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Find GPUs with an idle mean beside at least one busy one, on whatever node of the run."""
    look = Look(KIND, run, summary, thresholds)
    if len(look.gpus) < 2:
        return []
    means = [(of, busy.mean) for of in look.gpus if (busy := look.stat(of, "gpu_busy_percent"))]
    working = [pair for pair in means if pair[1] >= look.limit("others_busy_percent")]
    idle = [pair for pair in means if pair[1] < look.limit("idle_below_percent")]
    return look.outcome([_finding(look, idle, working)] if idle and working else [])


def _finding(look: Look, idle: list[tuple[Gpu, float]], busy: list[tuple[Gpu, float]]) -> Finding:
    resting = [of for of, _ in idle]
    working = [of for of, _ in busy]
    ask = _advice.use_gpus(look.scheduler, working, len(look.run.nodes))
    each = _advice.process_for_each(look.scheduler, resting[0].node, len(look.run.nodes))
    return look.finding(
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
