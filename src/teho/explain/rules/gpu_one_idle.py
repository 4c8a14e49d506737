"""Some of a node's GPUs were idle while the others worked."""

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
    """Find GPUs with an idle mean beside at least one busy one on the same node."""
    look = Look(KIND, run, summary, thresholds)
    idle: list[tuple[Gpu, float]] = []
    busy: list[tuple[Gpu, float]] = []
    for node in summary.nodes:
        if len(node.gpus) < 2:
            continue
        means = []
        for gpu in node.gpus:
            of = Gpu(node, gpu)
            stat = look.stat(of, "gpu_busy_percent")
            if stat is not None:
                means.append((of, stat.mean))
        working = [pair for pair in means if pair[1] >= look.limit("others_busy_percent")]
        if working:
            busy += working
            idle += [pair for pair in means if pair[1] < look.limit("idle_below_percent")]
    return look.outcome([_finding(look, idle, busy)] if idle else [])


def _finding(look: Look, idle: list[tuple[Gpu, float]], busy: list[tuple[Gpu, float]]) -> Finding:
    resting = [of for of, _ in idle]
    working = [of for of, _ in busy]
    per_node = max(sum(of.node.name == node.name for of in working) for node in look.summary.nodes)
    ask = _advice.use_gpus(look.scheduler, per_node, working)
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
        action=(
            "Start a process for each GPU, "
            f"`torchrun --nproc-per-node={len(resting[0].node.gpus)}` with "
            f"DistributedDataParallel; or {ask}."
        ),
        subjects=resting,
    )
