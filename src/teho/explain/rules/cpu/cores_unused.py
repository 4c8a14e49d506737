"""The job requested more cores than it used."""

from __future__ import annotations

import math
from typing import NamedTuple

from teho.explain import advice
from teho.explain.moments import Shows, bins_where
from teho.explain.places import each_of, gpus_of, per_place
from teho.explain.rule import Findings, Located, RuleContext, Severity, Threshold, chosen
from teho.explain.wording import span
from teho.model.missing import Missing, Reason
from teho.model.summary import NodeSummary

RANK = 470
SEVERITY = "critical, warning, remark"
THRESHOLDS = {
    "used_percent": Threshold(
        75.0,
        "%",
        "the portal of the Digital Research Alliance of Canada warns if the number of running "
        "threads is less than 0.75 times the number of cores",
    ),
    "warning_percent": chosen(
        50.0, "%", "below this limit, more than half of the requested cores were idle"
    ),
    "critical_percent": chosen(
        25.0, "%", "below this limit, more than three quarters of the requested cores were idle"
    ),
    "gpu_used_percent": Threshold(
        1.0,
        "%",
        "as in the rule gpu_never_used: if the program uses the GPU, the cores may load data for "
        "the GPU",
    ),
    "gpu_busy_percent": Threshold(
        50.0,
        "%",
        "as in the rule gpu_low_use: if the GPU is busier than this limit, the GPU gets its data "
        "in time, even without the unused cores",
    ),
    "cores_per_gpu": Threshold(
        12.0,
        "cores",
        "Jobstats, a job report tool, reports jobs with more than 12 cores for each GPU",
    ),
}


class _Use(NamedTuple):
    """How a node's cores were used."""

    node: NodeSummary
    requested: int
    used: float
    """Mean number of busy cores."""
    needed: int
    """Cores busy in the busiest time bin, rounded up; at least one per task."""
    tasks: int
    """Tasks of the recorded step on this node; 0 if it is not a step."""

    @property
    def percent(self) -> float:
        return 100 * self.used / self.requested


def judge(context: RuleContext) -> Findings:
    """Compare the cores that the job requested with the cores that the program used.

    The rule judges jobs only. If the GPUs of a node are used, the cores of the node may load the
    data for these GPUs. In this case, the rule judges the node only if the GPUs are busy enough,
    and the job requested more cores per GPU than the number of Jobstats. A job needs at least one
    core per task. Cores that come with the GPUs are not judged: a job cannot request fewer.
    """
    bands: dict[Severity, list[_Use]] = {severity: [] for severity in Severity}
    for node in context.summary.nodes:
        use = _use(context, node)
        most = context.limit("used_percent")
        if use is None or use.percent >= most or use.requested <= use.tasks:
            continue
        used = context.gpu_used(node)
        if used is False:
            bands[_severity(context, use)].append(use)
        elif used and _more_than_the_gpus_need(context, use):
            bands[Severity.REMARK].append(use)
    for severity, band in bands.items():
        if band:
            yield _finding(context, severity, band)


def _use(context: RuleContext, node: NodeSummary) -> _Use | None:
    allocation = context.run.allocation(node.name)
    if allocation.scheduler is None or "cores" in allocation.with_gpus:
        return None
    requested = allocation.cores_asked or node.cores
    used = context.figure(node, "CPU cores used", node.cpu_cores_used)
    if not requested:
        context.figure(node, "cores of the job", Missing(Reason.UNRECORDED))
    if not requested or used is None:
        return None
    rates = [rate for rate in node.series.get("job_cpu_s", ()) if rate is not None]
    # A bin's rate is a few hundredths off: 8.02 busy cores are 8.
    needed = math.ceil(max([used, *rates]) - 0.05)
    recorded = context.run.node(node.name)
    tasks = len(recorded.ranks) if recorded else 0
    return _Use(node, requested, used, max(1, tasks, needed), tasks)


def _more_than_the_gpus_need(context: RuleContext, use: _Use) -> bool:
    gpus = gpus_of(use.node)
    means = [context.mean(gpu, "gpu_busy_percent") for gpu in gpus]
    return use.requested > context.limit("cores_per_gpu") * len(gpus) and all(
        mean is not None and mean >= context.limit("gpu_busy_percent") for mean in means
    )


def _severity(context: RuleContext, use: _Use) -> Severity:
    if use.needed >= use.requested:
        return Severity.REMARK
    if use.percent < context.limit("critical_percent"):
        return Severity.CRITICAL
    return Severity.WARNING if use.percent < context.limit("warning_percent") else Severity.REMARK


def _finding(context: RuleContext, severity: Severity, uses: list[_Use]) -> Located:
    nodes = [use.node for use in uses]
    part = context.limit("used_percent") / 100
    graded = {Severity.CRITICAL: ["critical_percent"], Severity.WARNING: ["warning_percent"]}
    return context.finding(
        severity,
        f"The program kept {span([use.used for use in uses], '')} of "
        f"{span([use.requested for use in uses], '')} cores busy on {each_of(nodes)}.",
        evidence=(
            *per_place("cores used, mean", "cores", [(use.node, use.used) for use in uses]),
            *per_place(
                "cores used at the busiest time", "cores", [(use.node, use.needed) for use in uses]
            ),
            *per_place("cores requested", "cores", [(use.node, use.requested) for use in uses]),
        ),
        judged_by=["used_percent", *graded.get(severity, [])],
        action=_action(context, nodes[0], max(use.needed for use in uses), uses[0].requested),
        subjects=nodes,
        moments=context.moments_in("job_cpu_s", [(use.node, _unused(use, part)) for use in uses]),
    )


def _unused(use: _Use, part: float) -> Shows:
    return bins_where(use.node, "job_cpu_s", lambda cores: cores < part * use.requested)


def _action(context: RuleContext, node: NodeSummary, needed: int, requested: int) -> str:
    if needed >= requested:
        return (
            f"Keep the {requested} cores, because the program used all of them at its busiest "
            "time. Or run the part that needs few cores in a separate job."
        )
    fewer = advice.ask_cores(context.run, node, needed)
    cores = "1 core, which is" if needed == 1 else f"{needed} cores, which are"
    return f"Request only {cores} enough for the busiest time: {fewer}."
