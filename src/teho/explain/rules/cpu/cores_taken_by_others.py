"""Processes that are not the program's keep its cores busy."""

from __future__ import annotations

from typing import NamedTuple

from teho.explain.context import RuleContext, each_of, known, per_place, span
from teho.explain.rule import Mutes
from teho.explain.wording import counted
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.model.summary import NodeSummary
from teho.schedulers.registry import scheduler_or_none

__all__ = ["KIND", "MUTES", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "cores_taken_by_others"
RANK = 430
SAYS = "other processes keep the job's cores busy"
SEVERITY = "warning; if cores are left over, remark"
THRESHOLDS = {
    "taken_percent": Threshold(
        25.0,
        "%",
        "Alliance portal: a job that uses less than 75 % of its cores; here others use the rest",
    ),
    "cores_min": Threshold(0.5, "cores", "Teho's own choice: the system and the recorder use less"),
    "full_percent": Threshold(
        90.0, "%", "as cpu_busy_gpu_idle: SageMaker's profiler rules call a CPU above 90 % busy"
    ),
}
MUTES = Mutes(
    ("cpu_busy_gpu_idle", "serial_program", "cores_unused"),
    because="the program could not have used the cores",
)


class _Taken(NamedTuple):
    node: NodeSummary
    busy_percent: float
    """Of all cores that the program may run on."""
    used: float
    """Cores that the program kept busy."""
    others: float
    """Of the job's cores, those that others kept busy."""


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Compare how busy the cores were with what the program used of them.

    If the program may run on more cores than the job has, others may keep as many busy as are
    not the job's.
    """
    taken = [found for node in context.summary.nodes if (found := _taken(context, node))]
    full = context.limit("full_percent")
    bands = (
        (Severity.WARNING, [one for one in taken if one.busy_percent >= full]),
        (Severity.REMARK, [one for one in taken if one.busy_percent < full]),
    )
    return context.outcome([_finding(context, severity, band) for severity, band in bands if band])


def _taken(context: RuleContext, node: NodeSummary) -> _Taken | None:
    busy = context.stat(node, "cpu_busy_percent")
    used = context.figure(node, "CPU cores used", node.cpu_cores_used)
    if busy is None or used is None or node.cores < 1:
        return None
    seen = next((len(one.cores) for one in context.run.nodes if one.name == node.name), 0)
    may_use = seen or node.cores
    others = busy.mean / 100 * may_use - used - max(0, may_use - node.cores)
    least = max(context.limit("cores_min"), context.limit("taken_percent") / 100 * node.cores)
    return _Taken(node, busy.mean, used, others) if others >= least else None


def _finding(context: RuleContext, severity: Severity, taken: list[_Taken]) -> Finding:
    nodes = [one.node for one in taken]
    cores = counted([one.node.cores for one in taken], "core")
    return context.finding(
        severity,
        f"Other processes used {span([one.others for one in taken], '')} of the {cores} on "
        f"{each_of(nodes)}.",
        evidence=(
            *per_place("cores used by others", "cores", [(one.node, one.others) for one in taken]),
            *per_place("cores used by the program", "cores", [(at.node, at.used) for at in taken]),
            *per_place("CPU busy", "%", [(one.node, one.busy_percent) for one in taken]),
            *per_place("load", "tasks", known(nodes, "load_1min", "mean")),
        ),
        judged_by=["taken_percent", "cores_min", "full_percent"],
        action=_action(context),
        subjects=nodes,
        # If cores are left over, others do not explain what the program leaves unused.
        mutes=severity is Severity.WARNING,
    )


def _action(context: RuleContext) -> str:
    own = "While the job runs, look on its node for old processes of yours: `ps -u $USER`."
    if whole := context.scheduler_advice.whole_node:
        return (
            f"{own} If there are none, request the whole node, {whole}, or report it to the "
            "cluster's support."
        )
    if scheduler_or_none(context.scheduler).reports_cores:
        return f"{own} If there are none, report it to the cluster's support."
    return (
        "If this is a login node, run the program in a job. Look for old processes of yours: "
        "`ps -u $USER`."
    )
