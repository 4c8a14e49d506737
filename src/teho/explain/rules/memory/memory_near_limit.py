"""Memory came near its limit."""

from __future__ import annotations

from collections.abc import Iterator

from teho.explain import advice
from teho.explain.context import RuleContext
from teho.explain.places import each_of, per_place
from teho.explain.rule import chosen
from teho.explain.wording import span
from teho.model.finding import Finding, Severity
from teho.model.summary import NodeSummary

RANK = 450
SEVERITY = "warning"
THRESHOLDS = {
    "used_percent": chosen(
        90.0, "%", "with a larger batch or one more worker, the program may be killed"
    ),
    "margin_percent": chosen(25.0, "%", "room above the present limit"),
}


def judge(context: RuleContext) -> Iterator[Finding]:
    """Find nodes with a memory peak near the limit, whether the job requested the limit or not."""
    peaks: list[tuple[NodeSummary, float]] = []
    limits: list[tuple[NodeSummary, float]] = []
    for node in context.summary.nodes:
        limit = context.figure(node, "memory limit", node.memory_limit_bytes)
        used = context.figure(node, "memory used, highest", node.memory_peak_bytes)
        if limit and used is not None and 100 * used / limit >= context.limit("used_percent"):
            peaks.append((node, used))
            limits.append((node, limit))
    if not peaks:
        return
    nodes = [node for node, _ in peaks]
    shares = [100 * used / limit for (_, used), (_, limit) in zip(peaks, limits, strict=True)]
    most = max(limit for _, limit in limits)
    needed_bytes = most * (1 + context.limit("margin_percent") / 100)
    yield context.finding(
        Severity.WARNING,
        f"Memory reached {span(shares, '%')} of its limit on {each_of(nodes)}.",
        evidence=(
            *per_place("memory used, highest", "bytes", peaks),
            *per_place("memory limit", "bytes", limits),
        ),
        judged_by=["used_percent", "margin_percent"],
        action=advice.more_memory(context.run, nodes[0], needed_bytes),
        subjects=nodes,
    )
