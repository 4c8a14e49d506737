"""A program that uses one core has many."""

from __future__ import annotations

from teho.explain import advice
from teho.explain.context import RuleContext, allocation_of, each_of, per_place, span
from teho.explain.rule import Mutes
from teho.model.finding import Abstention, Evidence, Finding, Severity, Threshold
from teho.model.summary import NodeSummary

__all__ = ["KIND", "MUTES", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "serial_program"
RANK = 460
SAYS = "the program uses one core, and the job has several"
SEVERITY = "critical, warning; outside a job remark"
THRESHOLDS = {
    "one_core_min": Threshold(
        0.85, "cores", "Jobstats: CPU efficiency ÷ (100 % ÷ cores) between 0.85 and 1.01"
    ),
    "one_core_max": Threshold(
        1.01, "cores", "Jobstats: CPU efficiency ÷ (100 % ÷ cores) between 0.85 and 1.01"
    ),
    "unused_critical_percent": Threshold(
        75.0, "%", "Teho's own choice: three quarters of what was asked for did nothing"
    ),
    "gpu_used_percent": Threshold(
        1.0, "%", "as gpu_never_used; one thread that drives a GPU is not a fault"
    ),
}
MUTES = Mutes(
    ("cores_unused",),
    because="it says why the cores are unused",
)


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Find nodes on which the program kept one core's worth busy, of two or more.

    CPU efficiency ÷ (100 % ÷ cores), Jobstats' formula, is the mean number of cores
    used. A node whose GPU is used is left out: there one thread that drives it is
    usual, and the cores beside it may be what feeds it better.
    """
    serial: list[tuple[NodeSummary, float, int]] = []
    for node in context.summary.nodes:
        cores = allocation_of(context.run, node.name).cores_asked or node.cores
        used = context.figure(node, "CPU cores used", node.cpu_cores_used)
        if cores < 2 or used is None:
            continue
        alone = context.limit("one_core_min") <= used <= context.limit("one_core_max")
        if alone and context.gpu_used(node) is False:
            serial.append((node, used, cores))
    return context.outcome([_finding(context, serial)] if serial else [])


def _finding(context: RuleContext, serial: list[tuple[NodeSummary, float, int]]) -> Finding:
    nodes = [node for node, _, _ in serial]
    cores = [cores for _, _, cores in serial]
    unused_percent = 100 * (1 - sum(used for _, used, _ in serial) / sum(cores))
    if context.scheduler is None:
        # Nobody waits for the idle cores of the user's own machine.
        severity = Severity.REMARK
    elif unused_percent >= context.limit("unused_critical_percent"):
        severity = Severity.CRITICAL
    else:
        severity = Severity.WARNING
    threads = context.run.environment.get("OMP_NUM_THREADS")
    return context.finding(
        severity,
        f"The program used one core of {span(cores, '')} on {each_of(nodes)}.",
        evidence=(
            *per_place("cores used, mean", "cores", [(node, used) for node, used, _ in serial]),
            *per_place("cores of the job", "cores", [(node, float(n)) for node, _, n in serial]),
            *([Evidence("OMP_NUM_THREADS", threads)] if threads else []),
        ),
        judged_by=["one_core_min", "one_core_max", "unused_critical_percent"],
        action=_action(context, nodes[0], max(cores), threads),
        subjects=nodes,
    )


def _action(context: RuleContext, node: NodeSummary, cores: int, threads: str | None) -> str:
    parallel = f"spread the work: `multiprocessing.Pool({cores})`"
    if threads == "1":
        parallel = f"let its libraries use more, `export OMP_NUM_THREADS={cores}`, or {parallel}"
    fewer = advice.ask_cores(context.run, node, 1)
    return (
        f"Ask for one core, {fewer}; or {parallel}." if fewer else f"To make it faster, {parallel}."
    )
