"""The GPUs idled while the CPU cores were busy."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from teho.explain.rules import _advice
from teho.explain.rules._look import Look, Series, per_place, span, the_gpus
from teho.model.finding import Abstention, Evidence, Finding, Severity, Threshold
from teho.model.run import Run
from teho.model.summary import NodeSummary, Summary

__all__ = ["KIND", "judge"]

KIND = "cpu_busy_gpu_idle"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Find nodes that spent most of their time with idle GPUs and busy cores.

    Two ways of being busy: all of the job's cores (SageMaker's condition), and one
    core's worth of the program on many cores, which is a main thread that does
    everything by itself.
    """
    look = Look(KIND, run, summary, thresholds)
    all_busy = look.limit("cpu_percent")
    low, high = look.limit("one_core_min"), look.limit("one_core_max")
    everywhere: list[tuple[NodeSummary, float]] = []
    alone: list[tuple[NodeSummary, float]] = []
    for node in summary.nodes:
        gpu = look.busiest_gpu(node) if node.gpus else None
        if gpu is None:
            continue
        cores_busy = look.series(node, "cpu_busy_percent")
        rate = look.series(node, "job_cpu_s") if node.cores > 1 else None
        most = _share(look, gpu, cores_busy, lambda percent: percent > all_busy)
        one = _share(look, gpu, rate, lambda cores: low <= cores <= high)
        if most > look.limit("time_percent"):
            everywhere.append((node, most))
        elif one > look.limit("time_percent"):
            alone.append((node, one))
    findings = []
    if everywhere:
        findings.append(_all_cores(look, everywhere))
    if alone:
        findings.append(_one_core(look, alone))
    return look.outcome(findings)


def _share(look: Look, gpu: Series, cpu: Series | None, is_busy: Callable[[float], bool]) -> float:
    """Return the share of the recorded bins, in %, with idle GPUs and a busy CPU."""
    verdicts = [
        busy < look.limit("gpu_below_percent") and is_busy(cores)
        for busy, cores in zip(gpu, cpu or [None] * len(gpu), strict=True)
        if busy is not None and cores is not None
    ]
    return 100 * sum(verdicts) / len(verdicts) if verdicts else 0.0


def _all_cores(look: Look, shares: list[tuple[NodeSummary, float]]) -> Finding:
    nodes = [node for node, _ in shares]
    cores, gpus = nodes[0].cores, len(nodes[0].gpus)
    more = _advice.ask_cores(look.run, nodes[0], 2 * cores)
    workers = _advice.loader_workers(2 * cores if more else cores, gpus)
    ask = f"Try twice the cores, {more}, and " if more else "Try "
    return look.finding(
        Severity.WARNING,
        f"{the_gpus(nodes)} idled while all the job's cores were busy, "
        f"{span([share for _, share in shares], '%')} of the time.",
        evidence=(
            *per_place("time with idle GPUs and busy cores", "%", shares),
            *per_place("cores of the job", "", [(node, float(node.cores)) for node in nodes]),
        ),
        judged_by=["time_percent", "gpu_below_percent", "cpu_percent"],
        action=(
            f"{ask}`DataLoader(num_workers={workers})`; do less on the CPU: prepare the data once "
            "and store the result, or move the transforms to the GPU."
        ),
        subjects=nodes,
    )


def _one_core(look: Look, shares: list[tuple[NodeSummary, float]]) -> Finding:
    nodes = [node for node, _ in shares]
    workers = _advice.loader_workers(nodes[0].cores, len(nodes[0].gpus))
    return look.finding(
        Severity.WARNING,
        f"{the_gpus(nodes)} idled while the program worked on one core of "
        f"{span([float(node.cores) for node in nodes], '')}, "
        f"{span([share for _, share in shares], '%')} of the time.",
        evidence=(
            *per_place("time with idle GPUs and one busy core", "%", shares),
            *(
                Evidence(f"busiest core, mean, {node.name}", max(node.core_mean_percent), "%")
                for node in nodes[:1]
                if node.core_mean_percent
            ),
        ),
        judged_by=["time_percent", "gpu_below_percent", "one_core_min", "one_core_max"],
        action=(
            "Let other processes load and prepare the data: "
            f"`DataLoader(num_workers={workers}, persistent_workers=True)`, or "
            f"`dataset.map(f, num_parallel_calls={workers}).prefetch(2)`. `py-spy top --pid PID` "
            "shows what the main thread does."
        ),
        subjects=nodes,
    )
