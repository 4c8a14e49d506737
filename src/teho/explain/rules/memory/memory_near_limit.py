"""The job's memory came close to its limit."""

from __future__ import annotations

from teho.explain import advice
from teho.explain.context import RuleContext, each_of, per_place, span
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.model.summary import NodeSummary

__all__ = ["KIND", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "memory_near_limit"
RANK = 450
SAYS = "memory came near its limit"
SEVERITY = "warning"
THRESHOLDS = {
    "used_percent": Threshold(
        90.0, "%", "Teho's own choice: the next larger batch or worker may be killed"
    ),
    "margin_percent": Threshold(25.0, "%", "Teho's own choice: room over the present limit"),
}


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Find nodes on which the highest memory use came near the limit, whoever set it."""
    near: list[tuple[NodeSummary, float, float]] = []
    for node in context.summary.nodes:
        limit = context.figure(node, "memory limit", node.memory_limit_bytes)
        used = context.figure(node, "memory used, highest", node.memory_peak_bytes)
        if limit and used is not None and 100 * used / limit >= context.limit("used_percent"):
            near.append((node, used, limit))
    return context.outcome([_finding(context, near)] if near else [])


def _finding(context: RuleContext, near: list[tuple[NodeSummary, float, float]]) -> Finding:
    nodes = [node for node, _, _ in near]
    shares = [100 * used / limit for _, used, limit in near]
    needed_bytes = max(limit for _, _, limit in near) * (1 + context.limit("margin_percent") / 100)
    return context.finding(
        Severity.WARNING,
        f"Memory reached {span(shares, '%')} of its limit on {each_of(nodes)}.",
        evidence=(
            *per_place("memory used, highest", "bytes", [(node, used) for node, used, _ in near]),
            *per_place("memory limit", "bytes", [(node, limit) for node, _, limit in near]),
        ),
        judged_by=["used_percent", "margin_percent"],
        action=advice.more_memory(context.run, nodes[0], needed_bytes),
        subjects=nodes,
    )
