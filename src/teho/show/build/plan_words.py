"""Options, bills, limits and advice of a plan in words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timezone
from itertools import groupby, pairwise

from teho.explain.wording import joined
from teho.model.plan import Option, Refusal, Unfit
from teho.model.request import DEFAULT_TIME_S, Request
from teho.show.cells import format_moment, quantity
from teho.units import counted, format_count, format_duration, format_mib, plural

__all__ = [
    "bill_words",
    "cost_words",
    "instead_words",
    "label_of",
    "limits_of",
    "option_sentence",
    "request_words",
    "resource_words",
    "waiting_words",
]

_SUBJECT = "the job requests "
_AT_ONCE_S = 60.0


def request_words(request: Request) -> str:
    """Return what was requested, and what applies without a request."""
    gpus = (
        f"{request.gpus} × {request.gpu_type}" if request.gpu_type else counted(request.gpus, "GPU")
    )
    if request.gpu_memory_gib:
        gpus += f" of {_gib(request.gpu_memory_gib)} or more"
    parts = [
        gpus if request.gpus else "no GPU",
        counted(request.nodes, "node") if request.nodes else "",
        f"{counted(request.cpus_per_gpu, 'core')} per GPU" if request.cpus_per_gpu else "",
        counted(request.cpus, "core") if request.cpus else "",
        f"{format_mib(request.memory_mib)} per node" if request.memory_mib else "",
        f"{_gib(request.local_disk_gib)} of local disk" if request.local_disk_gib else "",
        f"a time limit of {format_duration(request.time_s)}" if request.time_s else "",
        f"`--launcher {request.launcher}`" if request.launcher != "plain" else "",
    ]
    requested = joined(list(filter(None, parts)))
    if request.time_s:
        return requested
    return (
        f"{requested}. You did not give `--time`, so the time limit is "
        f"{format_duration(DEFAULT_TIME_S)}, or less if a partition allows only less"
    )


def resource_words(option: Option) -> str:
    """Return what to request: `2 nodes, each 4 × a100 of 40 GiB, 48 cores, 480 GiB memory`."""
    parts = []
    if option.gpus_per_node:
        memory = f" of {_gib(option.gpu_memory_gib)}" if option.gpu_memory_gib else ""
        parts.append(f"{option.gpus_per_node} × {option.gpu_type}{memory}")
    cores = counted(option.cpus_per_task, "core")
    tasks = option.tasks_per_node
    parts.append(f"{tasks} tasks of {cores}" if tasks > 1 else cores)
    if option.memory_mib is not None:
        parts.append(f"{format_mib(option.memory_mib)} memory")
    if option.local_disk_gib is not None:
        parts.append(f"{_gib(option.local_disk_gib)} disk")
    kind = "" if option.gpus_per_node else f" of kind {option.node_kind}"
    parts.append(format_duration(option.time_s))
    nodes = f"{counted(option.nodes, 'node')}{kind}"
    return f"{nodes}, {'each ' if option.nodes > 1 else ''}{', '.join(parts)}"


def option_sentence(option: Option) -> str:
    """Return one option in a line: partition, request, and cost at most."""
    cost = f"; at most {cost_words(option)}" if option.cost and option.cost.unit else ""
    return f"{label_of(option)}: {resource_words(option)}{cost}"


def cost_words(option: Option) -> str:
    """Return what an option costs at most: `192 RGU-hours`; empty if that is not documented."""
    cost = option.cost
    return f"{format_count(cost.amount)} {plural(cost.unit, cost.amount)}" if cost else ""


def bill_words(option: Option) -> str:
    """Return the bill with its sum: `150 BU = (…) × 2 h · 80 % of the cost is for GPUs`."""
    cost = option.cost
    if cost is None:
        return "cost not documented"
    if not cost.unit:
        return "free of charge"
    total, _, _ = cost.sum.rpartition(" = ")
    share = (
        ""
        if cost.gpu_share is None
        else f" · {quantity(100 * cost.gpu_share, '%')} of the cost is for GPUs"
    )
    return f"{cost_words(option)} = {total or cost.sum}{share}"


def waiting_words(option: Option) -> str:
    """Return when an option would start, or how long similar jobs waited; empty: not known."""
    if option.expected_start_at is None:
        return _past_words(option)
    now = datetime.now(timezone.utc)
    wait_s = max(0.0, (option.expected_start_at - now).total_seconds())
    if wait_s < _AT_ONCE_S:
        return "the scheduler estimates that the job would start at once"
    at = format_moment(option.expected_start_at)
    wait = format_duration(wait_s)
    return f"the scheduler estimates that the job would start in {wait}, at {at}"


def _past_words(option: Option) -> str:
    wait = option.past_wait
    if option.similar_jobs is None:
        return ""
    if wait is None:
        return (
            "the start is not known: the scheduler gives no estimate, and its accounting has "
            f"{counted(option.similar_jobs, 'similar job')} of yours in the last 90 days "
            "(Teho needs at least 5)"
        )
    return (
        f"{wait.jobs} similar jobs of yours waited {format_duration(wait.median_s)} (median) in "
        f"the last 90 days; 90 % of these jobs waited at most {format_duration(wait.most_s)}"
    )


def label_of(place: Option | Unfit) -> str:
    """Return the name of a partition on screen."""
    return place.label or place.partition or "no partition"


def limits_of(unfit: Unfit) -> Iterator[tuple[str, str]]:
    """Yield the limits that the request breaks, each source with all its limits."""
    for source, refusals in groupby(unfit.refusals, key=lambda refusal: refusal.source):
        yield (
            "; ".join(
                _joined([refusal.sentence for refusal in same]) + instead
                for instead, same in groupby(refusals, key=instead_words)
            ),
            source,
        )


def instead_words(refusal: Refusal) -> str:
    """Return what would fit instead; empty if it is not known."""
    if not refusal.instead:
        return ""
    return (
        f"; try: `{refusal.instead}`"
        if refusal.instead[:2] == "--"
        else f"; try: {refusal.instead}"
    )


def _joined(sentences: list[str]) -> str:
    """Join sentences; leave out a subject that the sentence before has too."""
    shared = [
        one.removeprefix(_SUBJECT) if before.startswith(_SUBJECT) else one
        for before, one in pairwise(sentences)
    ]
    return "; ".join([sentences[0], *shared])


def _gib(amount: float) -> str:
    return f"{amount:.4g} GiB"
