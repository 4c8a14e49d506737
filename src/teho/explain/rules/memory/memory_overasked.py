"""The job asked for much more memory than it used."""

from __future__ import annotations

from typing import NamedTuple

from teho.explain import advice
from teho.explain.context import RuleContext, allocation_of, known, name_all, per_place, span
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.model.run import Run
from teho.model.summary import NodeSummary
from teho.units import GIB, format_bytes

__all__ = ["KIND", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "memory_overasked"
RANK = 490
SAYS = "the job requested more memory than it used"
SEVERITY = "warning; beside GPUs remark"
THRESHOLDS = {
    "used_percent": Threshold(70.0, "%", "Jobstats: less than 70 % of the memory asked for"),
    "unused_min_gib": Threshold(
        4.0,
        "GiB",
        "Teho's own choice: about one core's share of a usual node, so it keeps others out",
    ),
    "margin_percent": Threshold(
        20.0, "%", "Teho's own choice: room over the measured peak, which samples may have missed"
    ),
}

_ASKED = frozenset({"cgroup", "scheduler"})
"""Sources of a limit that somebody asked for; a whole node's memory is not."""


class _Use(NamedTuple):
    node: NodeSummary
    used_bytes: float
    asked_bytes: float

    @property
    def percent(self) -> float:
        return 100 * self.used_bytes / self.asked_bytes


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Compare the highest memory use on a node with what was asked for there."""
    roomy: list[_Use] = []
    for node in context.summary.nodes:
        use = _use(context, node)
        if (
            use is not None
            and use.percent < context.limit("used_percent")
            and use.asked_bytes - use.used_bytes >= context.limit("unused_min_gib") * GIB
        ):
            roomy.append(use)
    return context.outcome([_finding(context, roomy)] if roomy else [])


def _use(context: RuleContext, node: NodeSummary) -> _Use | None:
    in_job = allocation_of(context.run, node.name).scheduler is not None
    if node.memory_limit_source not in _ASKED and not (in_job and not node.memory_limit_source):
        return None
    asked = context.figure(node, "memory limit", node.memory_limit_bytes)
    used = context.figure(node, "memory used, highest", node.memory_peak_bytes)
    if not asked or used is None:
        return None
    # The kernel saw the peak of the largest process, also between two samples.
    return _Use(node, max([used, *_process_peaks(context.run, node.name)]), asked)


def _process_peaks(run: Run, node_name: str) -> list[int]:
    """Return the largest resident sets that are known of a node's own processes."""
    if run.has_tasks:
        ends = [task.end for task in run.tasks if task.node == node_name]
    else:
        ends = [run.end] if node_name == run.host else []
    peaks = [end.peak_process_bytes for end in ends if end is not None]
    return [peak for peak in peaks if peak is not None]


def _finding(context: RuleContext, roomy: list[_Use]) -> Finding:
    nodes = [use.node for use in roomy]
    needed_bytes = max(use.used_bytes for use in roomy) * (
        1 + context.limit("margin_percent") / 100
    )
    return context.finding(
        Severity.REMARK if context.gpus else Severity.WARNING,
        f"On {name_all(nodes)} the job used {span([use.used_bytes for use in roomy], 'bytes')} of "
        f"the {span([use.asked_bytes for use in roomy], 'bytes')} of memory asked for"
        f"{'' if len(nodes) == 1 else ' on each node'}.",
        evidence=(
            *per_place("memory used, highest", "bytes", [(at.node, at.used_bytes) for at in roomy]),
            *per_place("memory asked for", "bytes", [(at.node, at.asked_bytes) for at in roomy]),
            *per_place("memory used of asked", "%", [(at.node, at.percent) for at in roomy]),
            *per_place("page cache, highest", "bytes", known(nodes, "job_cache_bytes", "max")),
        ),
        judged_by=["used_percent", "unused_min_gib", "margin_percent"],
        action=_action(context, nodes[0], needed_bytes),
        subjects=nodes,
    )


def _action(context: RuleContext, node: NodeSummary, needed_bytes: float) -> str:
    allocation = allocation_of(context.run, node.name)
    cores = allocation.cores_asked or node.cores
    less = advice.ask_memory(allocation, needed_bytes, cores)
    if not less:
        return f"Lower the limit of the container or cgroup to {span([needed_bytes], 'bytes')}."
    margin = f"the measured peak and {context.limit('margin_percent'):g} %"
    kept = " Where the site gives memory with each GPU, leave it." if context.gpus else ""
    cache = known([node], "job_cache_bytes", "max")
    if cache and cache[0][1] >= GIB:
        kept += (
            f" Page cache, here up to {format_bytes(cache[0][1])}, shares that limit: leave more "
            "where the program reads its data again and again."
        )
    return f"Ask for {less}: {margin}.{kept}"
