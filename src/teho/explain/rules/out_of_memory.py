"""The kernel killed processes of the job because memory ran out."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.rules import _advice
from teho.explain.rules._look import Look, name_all, per_place, span
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.model.missing import Missing, Reason
from teho.model.run import Run
from teho.model.summary import NodeSummary, Summary

__all__ = ["KIND", "judge"]

KIND = "out_of_memory"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Find nodes on which the kernel counted out-of-memory kills in the job's cgroup."""
    look = Look(KIND, run, summary, thresholds)
    killed: list[tuple[NodeSummary, float]] = []
    for node in summary.nodes:
        total = node.totals.get("oom_kills", Missing(Reason.UNRECORDED))
        kills = look.figure(node, "out-of-memory kills", total)
        if kills is not None and kills >= look.limit("kills_min"):
            killed.append((node, kills))
    return look.outcome([_finding(look, killed)] if killed else [])


def _finding(look: Look, killed: list[tuple[NodeSummary, float]]) -> Finding:
    nodes = [node for node, _ in killed]
    kills = [count for _, count in killed]
    limits = [
        (node, node.memory_limit_bytes)
        for node in nodes
        if not isinstance(node.memory_limit_bytes, Missing)
    ]
    margin = 1 + look.limit("margin_percent") / 100
    needed_bytes = max(limit for _, limit in limits) * margin if limits else None
    return look.finding(
        Severity.CRITICAL,
        f"The kernel killed {span(kills, '')} process{'' if kills == [1] else 'es'} on "
        f"{name_all(nodes)} because memory ran out.",
        evidence=(
            *per_place("out-of-memory kills", "", killed),
            *per_place("memory limit", "bytes", limits),
        ),
        judged_by=["kills_min", "margin_percent"],
        action=_advice.more_memory(look.run, nodes[0], needed_bytes),
        subjects=nodes,
    )
