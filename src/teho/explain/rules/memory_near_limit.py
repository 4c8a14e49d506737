"""The job's memory came close to its limit."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.rules import _advice
from teho.explain.rules._look import Look, each_of, per_place, span
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.model.run import Run
from teho.model.summary import NodeSummary, Summary

__all__ = ["KIND", "judge"]

KIND = "memory_near_limit"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Find nodes on which the highest memory use came near the limit, whoever set it."""
    look = Look(KIND, run, summary, thresholds)
    near: list[tuple[NodeSummary, float, float]] = []
    for node in summary.nodes:
        limit = look.figure(node, "memory limit", node.memory_limit_bytes)
        used = look.figure(node, "memory used, highest", node.memory_peak_bytes)
        if limit and used is not None and 100 * used / limit >= look.limit("used_percent"):
            near.append((node, used, limit))
    return look.outcome([_finding(look, near)] if near else [])


def _finding(look: Look, near: list[tuple[NodeSummary, float, float]]) -> Finding:
    nodes = [node for node, _, _ in near]
    shares = [100 * used / limit for _, used, limit in near]
    needed_bytes = max(limit for _, _, limit in near) * (1 + look.limit("margin_percent") / 100)
    return look.finding(
        Severity.WARNING,
        f"Memory reached {span(shares, '%')} of its limit on {each_of(nodes)}.",
        evidence=(
            *per_place("memory used, highest", "bytes", [(node, used) for node, used, _ in near]),
            *per_place("memory limit", "bytes", [(node, limit) for node, _, limit in near]),
        ),
        judged_by=["used_percent", "margin_percent"],
        action=_advice.more_memory(look.run, nodes[0], needed_bytes),
        subjects=nodes,
    )
