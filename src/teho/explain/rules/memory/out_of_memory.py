"""The kernel killed processes of the job because memory ran out."""

from __future__ import annotations

from teho.explain import advice
from teho.explain.places import name_all, per_place
from teho.explain.rule import Certainty, Findings, RuleContext, Severity, Threshold, chosen
from teho.explain.wording import span
from teho.model.missing import Missing
from teho.model.summary import NodeSummary

RANK = 20
SEVERITY = "critical"
CERTAINTY = Certainty.SURE
THRESHOLDS = {
    "kills_min": Threshold(
        1.0,
        "kills",
        "one killed process is enough: the kernel kills a process only if memory runs out",
    ),
    "margin_percent": chosen(
        50.0,
        "%",
        "the program needs an unknown amount of memory above the limit; after a successful "
        "run, you can request less",
    ),
}
MUTES = ("memory_near_limit",)
MUTES_BECAUSE = "the memory was full, so the finding that it was nearly full is not needed"


def judge(context: RuleContext) -> Findings:
    """Find nodes on which the kernel counted out-of-memory kills in the job's cgroup."""
    killed: list[tuple[NodeSummary, float]] = []
    for node in context.summary.nodes:
        kills = context.total(node, "oom_kills")
        if kills is not None and kills >= context.limit("kills_min"):
            killed.append((node, kills))
    if not killed:
        return
    nodes, counts = [node for node, _ in killed], [count for _, count in killed]
    limits = [
        (node, node.memory_limit_bytes)
        for node in nodes
        if not isinstance(node.memory_limit_bytes, Missing)
    ]
    margin = 1 + context.limit("margin_percent") / 100
    needed_bytes = max(limit for _, limit in limits) * margin if limits else None
    yield context.finding(
        Severity.CRITICAL,
        f"The operating system killed {span(counts, '')} process{'' if counts == [1] else 'es'} on "
        f"{name_all(nodes)} because memory ran out.",
        evidence=(
            *per_place("out-of-memory kills", "", killed),
            *per_place("memory limit", "bytes", limits),
        ),
        action=advice.more_memory(context.run, nodes[0], needed_bytes),
        subjects=nodes,
        moments=context.moments("oom_kills", nodes, lambda kills_per_s: kills_per_s > 0),
    )
