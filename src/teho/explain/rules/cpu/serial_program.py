"""The program uses one core, and the job has several cores."""

from __future__ import annotations

from teho.explain import advice
from teho.explain.places import each_of, per_column
from teho.explain.rule import (
    Certainty,
    Evidence,
    Findings,
    RuleContext,
    Severity,
    Threshold,
    chosen,
)
from teho.explain.wording import span
from teho.model.summary import NodeSummary

RANK = 460
SEVERITY = "critical, warning; only a hint outside a job"
CERTAINTY = Certainty.SURE
_SOURCE = (
    "Jobstats, a job report tool, calls a job serial if the job keeps between 0.85 and 1.01 cores "
    "busy"
)
THRESHOLDS = {
    "one_core_min": Threshold(0.85, "cores", _SOURCE),
    "one_core_max": Threshold(1.01, "cores", _SOURCE),
    "unused_critical_percent": chosen(
        75.0, "%", "above this limit, more than three quarters of the requested cores were idle"
    ),
    "gpu_used_percent": Threshold(
        1.0,
        "%",
        "as in the rule gpu_never_used: a program that uses a GPU may need only one thread",
    ),
}
MUTES = ("cores_unused",)
MUTES_BECAUSE = "this finding says why the cores are unused"


def judge(context: RuleContext) -> Findings:
    """Find nodes with two or more cores on which the program used one core.

    Jobstats' formula, CPU efficiency ÷ (100 % ÷ cores), is the mean number of used cores. Nodes
    with a GPU that is used are not judged: one thread that drives the GPU is normal, and the other
    cores may load data for the GPU.
    """
    found: list[tuple[NodeSummary, float, float]] = []
    for node in context.summary.nodes:
        job_cores = context.run.allocation(node.name).cores_asked or node.cores
        mean = context.figure(node, "CPU cores used", node.cpu_cores_used)
        if job_cores < 2 or mean is None:
            continue
        is_one = context.limit("one_core_min") <= mean <= context.limit("one_core_max")
        if is_one and context.gpu_used(node) is False:
            found.append((node, mean, float(job_cores)))
    if not found:
        return
    nodes, used, cores = zip(*found, strict=True)
    threads = context.run.environment.get("OMP_NUM_THREADS")
    yield context.finding(
        _severity(context, 100 * (1 - sum(used) / sum(cores))),
        f"The program used only one of {span(cores, '')} cores on {each_of(nodes)}.",
        evidence=(
            *per_column(found, ("cores used, mean", "cores"), ("cores of the job", "cores")),
            *([Evidence("OMP_NUM_THREADS", threads)] if threads else []),
        ),
        judged_by=["one_core_min", "one_core_max", "unused_critical_percent"],
        action=_action(context, nodes[0], int(max(cores)), threads),
        subjects=nodes,
    )


def _severity(context: RuleContext, unused_percent: float) -> Severity:
    if context.scheduler is None:
        # Nobody else waits for the idle cores, and not every program can use several.
        return Severity.HINT
    critical = unused_percent >= context.limit("unused_critical_percent")
    return Severity.CRITICAL if critical else Severity.WARNING


def _action(context: RuleContext, node: NodeSummary, cores: int, threads: str | None) -> str:
    ways = []
    if fewer := advice.ask_cores(context.run, node, 1):
        ways.append(f"Request one core, {fewer}.")
    if threads == "1":
        ways.append(f"Let the libraries use more threads: `export OMP_NUM_THREADS={cores}`.")
    ways.append(
        "If parts of the work do not depend on each other, compute them at the same time: "
        f"`multiprocessing.Pool({cores})`."
    )
    return " Or: ".join([ways[0], *(way[0].lower() + way[1:] for way in ways[1:])])
