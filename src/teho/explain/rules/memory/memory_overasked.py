"""The job requested more memory than it used."""

from __future__ import annotations

from teho.explain import advice
from teho.explain.places import gauges, name_all, per_column, recorded
from teho.explain.rule import Findings, RuleContext, Severity, Threshold, chosen
from teho.explain.wording import span
from teho.model.run import Run
from teho.model.summary import NodeSummary
from teho.units import GIB, format_bytes

RANK = 490
SEVERITY = "warning, or remark if the job has GPUs"
THRESHOLDS = {
    "used_percent": Threshold(
        70.0,
        "%",
        "Jobstats, a job report tool, reports a job that used less than this share of the "
        "requested memory",
    ),
    "unused_min_gib": chosen(
        4.0,
        "GiB",
        "less unused memory is not reported; a node has about 4 GiB for each core, so another job "
        "could use one core with this amount of memory",
    ),
    "margin_percent": chosen(
        20.0,
        "%",
        "the advice adds this share to the peak, because memory use between two samples is not "
        "seen",
    ),
}

_REQUESTED = frozenset({"cgroup", "scheduler"})
"""Sources of a limit that was requested; the memory of a whole node was not."""


def judge(context: RuleContext) -> Findings:
    """Compare the highest memory use on a node with the request.

    Memory that comes with the GPUs is not judged: a job cannot request less.
    """
    found: list[tuple[NodeSummary, float, float, float]] = []
    for node in context.summary.nodes:
        used, requested = _use(context, node)
        if used is None or not requested:
            continue
        is_much = requested - used >= context.limit("unused_min_gib") * GIB
        if is_much and 100 * used / requested < context.limit("used_percent"):
            found.append((node, used, requested, 100 * used / requested))
    if not found:
        return
    nodes, peaks, requests, _ = zip(*found, strict=True)
    needed_bytes = max(peaks) * (1 + context.limit("margin_percent") / 100)
    yield context.finding(
        Severity.REMARK if context.gpus else Severity.WARNING,
        f"On {name_all(nodes)} the job used {span(peaks, 'bytes')} of the "
        f"{span(requests, 'bytes')} of memory that it requested"
        f"{'' if len(nodes) == 1 else ' on each node'}.",
        evidence=(
            *per_column(
                found,
                ("memory used, highest", "bytes"),
                ("memory requested", "bytes"),
                ("share of the requested memory that the job used", "%"),
            ),
            *gauges(nodes, "job_cache_bytes", "max", "page cache, highest"),
        ),
        action=_action(context, nodes[0], needed_bytes),
        subjects=nodes,
    )


def _use(context: RuleContext, node: NodeSummary) -> tuple[float | None, float | None]:
    """Return the memory that a job used and requested on a node, in bytes; None if not known."""
    allocation = context.run.allocation(node.name)
    if "memory" in allocation.with_gpus:
        return None, None
    in_job = allocation.scheduler is not None
    source = node.memory_limit_source
    if source not in _REQUESTED and not (in_job and not source):
        return None, None
    requested = context.figure(node, "memory limit", node.memory_limit_bytes)
    used = context.figure(node, "memory used, highest", node.memory_peak_bytes)
    if used is None:
        return None, requested
    # The kernel knows the peak of the largest process, also between two samples.
    return max([used, *_process_peaks(context.run, node.name)]), requested


def _process_peaks(run: Run, node_name: str) -> list[int]:
    """Return the known peaks of resident memory of a node's processes."""
    if run.has_tasks:
        ends = [task.end for task in run.tasks if task.node == node_name]
    else:
        ends = [run.end] if node_name == run.host else []
    peaks = [end.peak_process_bytes for end in ends if end is not None]
    return [peak for peak in peaks if peak is not None]


def _action(context: RuleContext, node: NodeSummary, needed_bytes: float) -> str:
    allocation = context.run.allocation(node.name)
    less = advice.ask_memory(allocation, needed_bytes, allocation.cores_asked or node.cores)
    if not less:
        amount = span([needed_bytes], "bytes")
        return f"Lower the memory limit of the container or cgroup to {amount}."
    margin = f"the measured peak plus {context.limit('margin_percent'):g} %"
    further = (
        " If the cluster gives memory with each GPU, do not change the request."
        if context.gpus
        else ""
    )
    cache = recorded([node], "job_cache_bytes", "max")
    if cache and cache[0][1] >= GIB:
        further += (
            " If the program reads the same data again and again, request more than this amount: "
            "the page cache, which keeps file data in memory (here up to "
            f"{format_bytes(cache[0][1])}), also counts as memory of the job."
        )
    return f"Request less memory: {less}, which is {margin}.{further}"
