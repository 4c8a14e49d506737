"""The job asked for more cores than it used."""

from __future__ import annotations

import math
from typing import NamedTuple

from teho.explain import advice
from teho.explain.context import NodeGpu, RuleContext, allocation_of, each_of, per_place, span
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.model.missing import Missing, Reason
from teho.model.summary import Figure, NodeSummary

__all__ = ["KIND", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "cores_unused"
RANK = 470
SAYS = "the job requested more cores than it used"
SEVERITY = "critical, warning, remark"
THRESHOLDS = {
    "used_percent": Threshold(75.0, "%", "Alliance portal: running threads ÷ cores below 0.75"),
    "warning_percent": Threshold(
        50.0, "%", "Teho's own choice: more than half of what was asked for did nothing"
    ),
    "critical_percent": Threshold(
        25.0, "%", "Teho's own choice: more than three quarters of what was asked for did nothing"
    ),
    "gpu_used_percent": Threshold(
        1.0, "%", "as gpu_never_used; cores beside a GPU that is used may be there to feed it"
    ),
    "gpu_busy_percent": Threshold(
        50.0,
        "%",
        "as gpu_low_use; a GPU above it is supplied with data well enough to call cores spare",
    ),
    "cores_per_gpu": Threshold(12.0, "cores", "Jobstats: more than 12 cores for each GPU"),
}


class _Use(NamedTuple):
    """What one node's cores were used for."""

    node: NodeSummary
    asked: int
    used: float
    """Mean number of busy cores."""
    needed: int
    """Cores busy in the busiest time bin, rounded up; at least one a task."""
    tasks: int
    """Tasks of the recorded step on this node; 0: it is not a step."""

    @property
    def percent(self) -> float:
        return 100 * self.used / self.asked


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Compare the cores that the job asked for with those that the program kept busy.

    Outside a job nobody asked for cores. On a node whose GPUs are used, cores are
    there to feed them: they are only judged where the GPUs are well fed and the job
    asked for more than Jobstats' number for each. A core for each task is the least that
    a job can have.
    """
    bands: dict[Severity, list[_Use]] = {severity: [] for severity in Severity}
    for node in context.summary.nodes:
        use = _use(context, node)
        if use is None or use.percent >= context.limit("used_percent") or use.asked <= use.tasks:
            continue
        used = context.gpu_used(node)
        if used is False:
            bands[_severity(context, use)].append(use)
        elif used and _more_than_the_gpus_need(context, use):
            bands[Severity.REMARK].append(use)
    return context.outcome(
        [_finding(context, severity, band) for severity, band in bands.items() if band]
    )


def _use(context: RuleContext, node: NodeSummary) -> _Use | None:
    allocation = allocation_of(context.run, node.name)
    if allocation.scheduler is None:
        return None
    asked = allocation.cores_asked or node.cores
    told: Figure = float(asked) if asked else Missing(Reason.UNRECORDED)
    used = context.figure(node, "CPU cores used", node.cpu_cores_used)
    if context.figure(node, "cores of the job", told) is None or used is None:
        return None
    rates = [rate for rate in node.series.get("job_cpu_s", ()) if rate is not None]
    # A bin's rate is a few hundredths off: 8.02 busy cores are 8.
    needed = math.ceil(max([used, *rates]) - 0.05)
    tasks = next((len(of.ranks) for of in context.run.nodes if of.name == node.name), 0)
    return _Use(node, asked, used, max(1, tasks, needed), tasks)


def _more_than_the_gpus_need(context: RuleContext, use: _Use) -> bool:
    gpus = [NodeGpu(use.node, gpu) for gpu in use.node.gpus]
    busy = [context.stat(of, "gpu_busy_percent") for of in gpus]
    return use.asked > context.limit("cores_per_gpu") * len(gpus) and all(
        stat is not None and stat.mean >= context.limit("gpu_busy_percent") for stat in busy
    )


def _severity(context: RuleContext, use: _Use) -> Severity:
    if use.needed >= use.asked:
        return Severity.REMARK
    if use.percent < context.limit("critical_percent"):
        return Severity.CRITICAL
    return Severity.WARNING if use.percent < context.limit("warning_percent") else Severity.REMARK


def _finding(context: RuleContext, severity: Severity, uses: list[_Use]) -> Finding:
    nodes = [use.node for use in uses]
    graded = {Severity.CRITICAL: ["critical_percent"], Severity.WARNING: ["warning_percent"]}
    return context.finding(
        severity,
        f"The program kept {span([use.used for use in uses], '')} of "
        f"{span([use.asked for use in uses], '')} cores busy on {each_of(nodes)}.",
        evidence=(
            *per_place("cores used, mean", "cores", [(use.node, use.used) for use in uses]),
            *per_place("cores used, busiest", "cores", [(use.node, use.needed) for use in uses]),
            *per_place("cores asked for", "cores", [(use.node, use.asked) for use in uses]),
        ),
        judged_by=["used_percent", *graded.get(severity, [])],
        action=_action(context, nodes[0], max(use.needed for use in uses), uses[0].asked),
        subjects=nodes,
    )


def _action(context: RuleContext, node: NodeSummary, needed: int, asked: int) -> str:
    if needed >= asked:
        return (
            f"It used all {asked} cores at its busiest: keep them, or run the part that needs few "
            "cores in a job of its own."
        )
    fewer = advice.ask_cores(context.run, node, needed)
    cores = "core is" if needed == 1 else "cores are"
    return f"{needed} {cores} enough for its busiest time: {fewer}."
