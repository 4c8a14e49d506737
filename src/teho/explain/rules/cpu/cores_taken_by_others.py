"""Other processes keep the job's cores busy."""

from __future__ import annotations

from typing import NamedTuple

from teho.explain.places import each_of, gauges, per_place
from teho.explain.rule import Findings, Located, RuleContext, Severity, Threshold, chosen
from teho.explain.wording import counted, span
from teho.model.summary import NodeSummary
from teho.schedulers.registry import scheduler_or_none

RANK = 430
SEVERITY = "warning, or only a remark if some cores are idle"
THRESHOLDS = {
    "taken_percent": Threshold(
        25.0,
        "%",
        "the portal of the Digital Research Alliance of Canada asks each job to use 75 % of its "
        "cores. This is not possible if other programs use more than 25 % of these cores",
    ),
    "cores_min": chosen(
        0.5, "cores", "the operating system and the recorder together use less than half a core"
    ),
    "full_percent": Threshold(
        90.0,
        "%",
        "as in the rule cpu_busy_gpu_idle: in SageMaker's profiler rules, a CPU counts as busy "
        "if it works for more than 90 % of the time",
    ),
}
MUTES = ("cpu_busy_gpu_idle", "serial_program", "cores_unused")
MUTES_BECAUSE = "the program could not use the cores that other programs used"


class _Taken(NamedTuple):
    node: NodeSummary
    busy_percent: float
    """Share of all cores on which the program may run."""
    used: float
    """Cores that the program kept busy."""
    others: float
    """Cores of the job that others kept busy."""


def judge(context: RuleContext) -> Findings:
    """Compare how busy the cores were with the cores that the program used.

    If the program may run on more cores than the job has, other programs may use the cores that do
    not belong to the job.
    """
    taken = [found for node in context.summary.nodes if (found := _taken(context, node))]
    full = context.limit("full_percent")
    if crowded := [one for one in taken if one.busy_percent >= full]:
        yield _finding(context, Severity.WARNING, crowded)
    if with_room := [one for one in taken if one.busy_percent < full]:
        yield _finding(context, Severity.REMARK, with_room)


def _taken(context: RuleContext, node: NodeSummary) -> _Taken | None:
    busy = context.mean(node, "cpu_busy_percent")
    used = context.figure(node, "CPU cores used", node.cpu_cores_used)
    if busy is None or used is None or node.cores < 1:
        return None
    recorded = context.run.node(node.name)
    may_use = (len(recorded.cores) if recorded else 0) or node.cores
    others = busy / 100 * may_use - used - max(0, may_use - node.cores)
    least = max(context.limit("cores_min"), context.limit("taken_percent") / 100 * node.cores)
    return _Taken(node, busy, used, others) if others >= least else None


def _finding(context: RuleContext, severity: Severity, taken: list[_Taken]) -> Located:
    nodes = [one.node for one in taken]
    cores = counted([one.node.cores for one in taken], "core")
    return context.finding(
        severity,
        f"On average, other processes used {span([one.others for one in taken], '')} of the "
        f"{cores} on {each_of(nodes)}.",
        evidence=(
            *per_place(
                "cores used by other processes", "cores", [(one.node, one.others) for one in taken]
            ),
            *per_place("cores used by the program", "cores", [(at.node, at.used) for at in taken]),
            *per_place("CPU busy", "%", [(one.node, one.busy_percent) for one in taken]),
            *gauges(nodes, "load_1min", label="load average"),
        ),
        action=_action(context),
        subjects=nodes,
        # If cores are left over, the others do not explain why the program leaves cores unused.
        mutes=severity is Severity.WARNING,
    )


def _action(context: RuleContext) -> str:
    first_step = "While the job runs, look for your old processes on the job's node: `ps -u $USER`."
    if whole := context.scheduler_advice.whole_node:
        return (
            f"{first_step} If you have no old processes there, request the whole node, {whole}, or "
            "report the other processes to the cluster's support."
        )
    if scheduler_or_none(context.scheduler).reports_cores:
        return (
            f"{first_step} If you have no old processes there, report the other processes to the "
            "cluster's support."
        )
    return (
        "If this is a login node, run the program in a job. Look for your old processes: "
        "`ps -u $USER`."
    )
