"""The GPUs idled while the CPU cores were busy."""

from __future__ import annotations

from collections.abc import Callable

from teho.explain import advice
from teho.explain.context import RuleContext, Series, per_place, span, the_gpus
from teho.explain.rule import Mutes
from teho.model.finding import Abstention, Evidence, Finding, Severity, Threshold
from teho.model.summary import NodeSummary

__all__ = ["KIND", "MUTES", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "cpu_busy_gpu_idle"
RANK = 340
SAYS = "all GPUs of a node were idle while all cores worked, or while one main thread did"
SEVERITY = "warning"
THRESHOLDS = {
    "gpu_below_percent": Threshold(
        10.0, "%", "SageMaker's profiler rules: GPU below 10 % and CPU above 90 %"
    ),
    "cpu_percent": Threshold(
        90.0, "%", "SageMaker's profiler rules: GPU below 10 % and CPU above 90 %"
    ),
    "time_percent": Threshold(
        50.0, "%", "SageMaker's profiler rules: for more than 50 % of the time"
    ),
    "one_core_min": Threshold(
        0.9, "cores", "Teho's own choice: SageMaker's 90 %, of one core instead of all"
    ),
    "one_core_max": Threshold(1.1, "cores", "Teho's own choice: one thread, and little beside it"),
}
MUTES = Mutes(
    ("communication_bound",),
    because="the CPU explains the waiting",
)


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Find nodes that spent most of their time with idle GPUs and busy cores.

    Two ways of being busy: all of the job's cores (SageMaker's condition), and one
    core's worth of the program on many cores, which is a main thread that does
    everything by itself.
    """
    all_busy = context.limit("cpu_percent")
    low, high = context.limit("one_core_min"), context.limit("one_core_max")
    everywhere: list[tuple[NodeSummary, float]] = []
    alone: list[tuple[NodeSummary, float]] = []
    for node in context.summary.nodes:
        gpu = context.busiest_gpu(node) if node.gpus else None
        if gpu is None:
            continue
        cores_busy = context.series(node, "cpu_busy_percent")
        rate = context.series(node, "job_cpu_s") if node.cores > 1 else None
        most = _share(context, gpu, cores_busy, lambda percent: percent > all_busy)
        one = _share(context, gpu, rate, lambda cores: low <= cores <= high)
        if most > context.limit("time_percent"):
            everywhere.append((node, most))
        elif one > context.limit("time_percent"):
            alone.append((node, one))
    findings = []
    if everywhere:
        findings.append(_all_cores(context, everywhere))
    if alone:
        findings.append(_one_core(context, alone))
    return context.outcome(findings)


def _share(
    context: RuleContext, gpu: Series, cpu: Series | None, is_busy: Callable[[float], bool]
) -> float:
    """Return the share of the recorded bins, in %, with idle GPUs and a busy CPU."""
    verdicts = [
        busy < context.limit("gpu_below_percent") and is_busy(cores)
        for busy, cores in zip(gpu, cpu or [None] * len(gpu), strict=True)
        if busy is not None and cores is not None
    ]
    return 100 * sum(verdicts) / len(verdicts) if verdicts else 0.0


def _all_cores(context: RuleContext, shares: list[tuple[NodeSummary, float]]) -> Finding:
    nodes = [node for node, _ in shares]
    cores, gpus = nodes[0].cores, len(nodes[0].gpus)
    more = advice.ask_cores(context.run, nodes[0], 2 * cores)
    workers = advice.loader_workers(2 * cores if more else cores, gpus)
    ask = f"Try twice the cores, {more}, and " if more else "Try "
    return context.finding(
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


def _one_core(context: RuleContext, shares: list[tuple[NodeSummary, float]]) -> Finding:
    nodes = [node for node, _ in shares]
    workers = advice.loader_workers(nodes[0].cores, len(nodes[0].gpus))
    return context.finding(
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
