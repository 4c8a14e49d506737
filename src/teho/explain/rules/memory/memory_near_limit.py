"""The memory use of the job came near the memory limit."""

from __future__ import annotations

from teho.explain import advice
from teho.explain.moments import near_peak
from teho.explain.places import each_of, per_column
from teho.explain.rule import Certainty, Findings, RuleContext, Severity, chosen
from teho.explain.wording import span
from teho.model.summary import NodeSummary

RANK = 450
SEVERITY = "warning"
CERTAINTY = Certainty.SURE
THRESHOLDS = {
    "used_percent": chosen(
        90.0,
        "%",
        "above this limit, a larger batch or one more worker may fill the memory, and the kernel "
        "then kills the program",
    ),
    "margin_percent": chosen(
        25.0, "%", "the next run should get a quarter more memory than the present limit"
    ),
}


def judge(context: RuleContext) -> Findings:
    """Find nodes with a memory peak near the limit, whether the job requested the limit or not."""
    near: list[tuple[NodeSummary, float, float]] = []
    for node in context.summary.nodes:
        limit = context.figure(node, "memory limit", node.memory_limit_bytes)
        used = context.figure(node, "memory used, highest", node.memory_peak_bytes)
        if limit and used is not None and 100 * used / limit >= context.limit("used_percent"):
            near.append((node, used, limit))
    if not near:
        return
    nodes = [node for node, _, _ in near]
    shares = [100 * used / limit for _, used, limit in near]
    most = max(limit for _, _, limit in near)
    needed_bytes = most * (1 + context.limit("margin_percent") / 100)
    yield context.finding(
        Severity.WARNING,
        f"Memory use reached {span(shares, '%')} of the memory limit on {each_of(nodes)}.",
        evidence=per_column(near, ("memory used, highest", "bytes"), ("memory limit", "bytes")),
        action=advice.more_memory(context.run, nodes[0], needed_bytes),
        subjects=nodes,
        moments=context.moments_in(
            "job_memory_bytes", [(node, near_peak(node, "job_memory_bytes")) for node in nodes]
        ),
    )
