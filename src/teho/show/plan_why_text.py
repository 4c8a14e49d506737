"""A plan with all that is known of it: each way that fits, and each limit in the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timezone
from itertools import groupby, pairwise
from typing import TypeVar

from rich.text import Text

from teho.model.cluster import Cluster
from teho.model.plan import Advice, Answer, Option, Refusal, Unfit
from teho.model.request import DEFAULT_TIME_S, Request
from teho.show.cells import format_moment, plain, quantity
from teho.show.text.flow import dotted, flow, printed, sentence, words
from teho.units import counted, format_count, format_duration, format_mib, plural

__all__ = [
    "advice_lines",
    "by_distance",
    "cost_words",
    "label_of",
    "option_sentence",
    "plan_head",
    "refused_lines",
    "render_plan_why",
]

_T = TypeVar("_T")
_QUIET = frozenset({"limit_not_documented", "cost_not_documented"})
"""Advice on what the catalogue lacks, not on what the user asked."""
_SAID_ABOVE = frozenset({"time_not_said"})
"""Advice that the second line of the plan gives once for all."""
_WHOLE_CLUSTER = frozenset({"retired"})
_OTHER_JOBS = frozenset({"no_such_nodes"})
_SUBJECT = "the job requests "
_INDENT = Text("  ")
_AT_ONCE_S = 60.0


def render_plan_why(
    request: Request, answer: Answer, clusters: Mapping[str, Cluster], *, width: int, color: bool
) -> str:
    """Render a plan with every bill, warning and limit; ends in a line break.

    Args:
        request: what was asked.
        answer: what the planner says to it.
        clusters: the clusters that it was compared with, by name.
        width: columns of the terminal.
        color: whether escape codes for colour may be written.
    """
    retired = [unfit for unfit in answer.unfit if _kinds(unfit) & _WHOLE_CLUSTER]
    unfit = [unfit for unfit in answer.unfit if unfit not in retired]
    everywhere = _everywhere(answer.options)
    blocks = [plan_head(request, answer, clusters, width)]
    blocks.append([line for advice in everywhere for line in advice_lines(advice, width)])
    blocks += [
        _cluster(options, clusters[name], everywhere, width)
        for name, options in _by_cluster(answer.options, lambda option: option.cluster).items()
    ]
    blocks += [_unfit(unfit, clusters, width), _retired(retired, width)]
    return printed((block for block in blocks if block), width=width, color=color)


def plan_head(
    request: Request, answer: Answer, clusters: Mapping[str, Cluster], width: int
) -> list[Text]:
    """Return the sentence that matters, and what was asked."""
    asked = flow(dotted(_asked(request)), width, _INDENT, style="dim")
    if not answer.options:
        verdict = words(_nearest(answer, clusters))
        return [*flow(verdict, width, _mark("✗", "bold red"), style="bold"), *asked]
    first, count = answer.options[0], len(answer.options)
    cost = f", {cost_words(first)}" if first.cost and first.cost.unit else ""
    where = f"{clusters[first.cluster].title}, {label_of(first)}"
    verdict = words(f"Fits on {where}: {_resources(first)}{cost}")
    lines = flow(verdict, width, _mark("✓", "bold green"), style="bold")
    names = {option.cluster for option in answer.options}
    if count > 1:
        more = f"the first of {count} ways"
        more += f" on {len(names)} clusters" if len(names) > 1 else ""
        more += ", by the GPU least above the need" if len(names) > 1 and request.gpus else ""
        lines += flow(words(more), width, _INDENT, style="dim")
    return [*lines, *asked]


def _asked(request: Request) -> list[Text]:
    gpus = (
        f"{request.gpus} × {request.gpu_type}" if request.gpu_type else counted(request.gpus, "GPU")
    )
    if request.gpu_memory_gib:
        gpus += f" of {_gib(request.gpu_memory_gib)} or more"
    parts = [
        f"asked: {gpus}" if request.gpus else "asked: no GPU",
        counted(request.nodes, "node") if request.nodes else "",
        f"{counted(request.cpus_per_gpu, 'core')} a GPU" if request.cpus_per_gpu else "",
        counted(request.cpus, "core") if request.cpus else "",
        f"{format_mib(request.memory_mib)} a node" if request.memory_mib else "",
        f"{_gib(request.local_disk_gib)} of local disk" if request.local_disk_gib else "",
        format_duration(request.time_s)
        if request.time_s
        else f"no `--time`, so {format_duration(DEFAULT_TIME_S)} or what a partition allows",
        request.launcher if request.launcher != "plain" else "",
    ]
    return [Text(plain(part)) for part in parts if part]


def _nearest(answer: Answer, clusters: Mapping[str, Cluster]) -> str:
    """Return the sentence that stands first where nothing fits: the one limit to look at."""
    if not answer.unfit:
        return "Nothing fits: the catalogue has no cluster"
    nearest = min(answer.unfit, key=_distance)
    refusal = nearest.refusals[0]
    if refusal.kind == "retired":
        return f"Nothing fits: {refusal.sentence}{_instead(refusal)}"
    where = clusters[nearest.cluster].title
    if nearest.label or nearest.partition:
        where += f", {nearest.label or nearest.partition}"
    return f"Nothing fits. Nearest is {where}: {refusal.sentence}{_instead(refusal)}"


def _cluster(
    options: list[Option], cluster: Cluster, said: tuple[Advice, ...], width: int
) -> list[Text]:
    lines = [_heading(cluster)]
    shared = [
        advice for advice in options[0].advice
        if all(advice in option.advice for option in options)
    ]  # fmt: skip
    column = min(16, max(len(label_of(option)) for option in options))
    for option in options:
        lines += _option(option, cluster, column, width)
        for advice in option.advice:
            if advice not in shared:
                lines += advice_lines(advice, width, " " * (column + 4))
        if option.unknown:
            text = f"not known here: {'; '.join(option.unknown)}"
            lines += flow(words(text), width, Text(" " * (column + 4)), style="dim")
    for advice in shared:
        if advice not in said:
            lines += advice_lines(advice, width, "  ")
    sources = dict.fromkeys(option.cost.source for option in options if option.cost)
    bills = [source for source in sources if source]
    if bills:
        lines += flow(words(f"bill: {'; '.join(bills)}"), width, _INDENT, style="dim", hang=4)
    return lines


def _option(option: Option, cluster: Cluster, column: int, width: int) -> list[Text]:
    name = Text("  ").append(label_of(option).ljust(column), "bold").append("  ")
    hang = column + 4
    purpose = _purpose(cluster, option)
    pieces = words(_resources(option) + (f" ({purpose})" if purpose != "production" else ""))
    lines = flow(pieces, width, name, hang=hang)
    lines += flow(_bill(option), width, Text(" " * hang))
    waiting = _waiting(option)
    return lines + flow(waiting, width, Text(" " * hang)) if waiting else lines


def _waiting(option: Option) -> list[Text]:
    """Say when the scheduler would start it; nothing if nobody asked."""
    if option.expected_start_at is None:
        return []
    now = datetime.now(timezone.utc)
    wait_s = max(0.0, (option.expected_start_at - now).total_seconds())
    if wait_s < _AT_ONCE_S:
        return words("would start at once, says the scheduler")
    at = format_moment(option.expected_start_at)
    return words(f"would start in {format_duration(wait_s)}, at {at}, says the scheduler")


def _bill(option: Option) -> list[Text]:
    cost = option.cost
    if cost is None:
        return words("cost not documented")
    if not cost.unit:
        return words("nothing is charged")
    total, _, _ = cost.sum.rpartition(" = ")
    pieces = [Text(cost_words(option), "green"), *words(f"= {total or cost.sum}")]
    if cost.gpu_share is not None:
        share = quantity(100 * cost.gpu_share, "%")
        pieces[-1].append(" ·", "dim")
        pieces += [Text(f"GPUs {share}")]
    return pieces


def cost_words(option: Option) -> str:
    """Return what an option costs at most: `192 RGU-hours`; empty if that is not documented."""
    cost = option.cost
    return f"{format_count(cost.amount)} {plural(cost.unit, cost.amount)}" if cost else ""


def option_sentence(option: Option) -> str:
    """Write one option in a line: where, what is asked for, and what it costs at most."""
    cost = f"; at most {cost_words(option)}" if option.cost and option.cost.unit else ""
    return f"{label_of(option)}: {_resources(option)}{cost}"


def _resources(option: Option) -> str:
    """Write what to ask for: `2 nodes, each 4 × a100 of 40 GiB, 48 cores, 480 GiB memory`."""
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


def _unfit(unfit: list[Unfit], clusters: Mapping[str, Cluster], width: int) -> list[Text]:
    """Write every limit that is in the way, the nearest cluster and partition first."""
    lines: list[Text] = []
    for name, members in _by_cluster(sorted(unfit, key=_distance), lambda one: one.cluster).items():
        lines.append(Text("  ").append_text(_called(clusters[name])))
        others = [one for one in members if _kinds(one) <= _OTHER_JOBS]
        for one in members:
            if one not in others or len(others) == 1:
                lines += refused_lines(one, width)
        if len(others) > 1:
            labels = ", ".join(_name(one) for one in others)
            text = f"without such nodes: {labels}"
            lines += flow(words(text), width, Text("    "), style="dim", hang=6)
    return [Text("Does not fit", "bold"), *lines] if lines else []


def refused_lines(unfit: Unfit, width: int) -> list[Text]:
    """Write the limits of one place; those of one source stand before it, once."""
    lines: list[Text] = []
    pieces = [Text(f"{plain(_name(unfit))}:", "bold")]
    for source, refusals in groupby(unfit.refusals, key=lambda refusal: refusal.source):
        text = ""
        for instead, same in groupby(refusals, key=_instead):
            text += "; " if text else ""
            text += _joined([refusal.sentence for refusal in same]) + instead
        pieces += sentence(text, source)
        lines += flow(pieces, width, Text("      " if lines else "    "), hang=6)
        pieces = []
    return lines


def _joined(told: list[str]) -> str:
    """Join sentences; a subject that the sentence before has too is left out."""
    shared = [
        one.removeprefix(_SUBJECT) if before.startswith(_SUBJECT) else one
        for before, one in pairwise(told)
    ]
    return "; ".join([told[0], *shared])


def _retired(unfit: list[Unfit], width: int) -> list[Text]:
    lines: list[Text] = []
    for one in unfit:
        refusal = one.refusals[0]
        lines += flow(words(f"{refusal.sentence}{_instead(refusal)}"), width, _INDENT, hang=4)
    return [Text("Retired", "bold"), *lines] if lines else []


def advice_lines(advice: Advice, width: int, before: str = "") -> list[Text]:
    """Write a warning with its source; nothing if the head of a plan says it."""
    if advice.kind in _SAID_ABOVE:
        return []
    if advice.kind in _QUIET:
        return flow(words(advice.sentence), width, Text(before), style="dim")
    lead = Text(before).append_text(_mark("!", "bold yellow"))
    return flow(sentence(advice.sentence, advice.source), width, lead)


def _heading(cluster: Cluster) -> Text:
    return _called(cluster).append(f"  {cluster.site}", "dim")


def _called(cluster: Cluster) -> Text:
    """Write a cluster's title, and its name where `--cluster` takes another word."""
    title = Text(cluster.title, "bold")
    return (
        title if cluster.title.lower() == cluster.name else title.append(f"  {cluster.name}", "dim")
    )


def _everywhere(options: tuple[Option, ...]) -> tuple[Advice, ...]:
    """Return the warnings that hold on every cluster, where there are several."""
    if len({option.cluster for option in options}) < 2:
        return ()
    return tuple(
        advice for advice in options[0].advice
        if all(advice in option.advice for option in options)
    )  # fmt: skip


def _by_cluster(items: Iterable[_T], name_of: Callable[[_T], str]) -> dict[str, list[_T]]:
    groups: dict[str, list[_T]] = {}
    for item in items:
        groups.setdefault(name_of(item), []).append(item)
    return groups


def by_distance(unfit: Iterable[Unfit]) -> list[Unfit]:
    """Return places that do not fit, the nearest first; neither retired nor without such nodes."""
    other = _WHOLE_CLUSTER | _OTHER_JOBS
    return sorted((one for one in unfit if not _kinds(one) & other), key=_distance)


def _distance(unfit: Unfit) -> tuple[bool, bool, int]:
    """Order places that do not fit: those that one change would mend come first."""
    kinds = _kinds(unfit)
    return (bool(kinds & _WHOLE_CLUSTER), bool(kinds & _OTHER_JOBS), len(unfit.refusals))


def _kinds(unfit: Unfit) -> set[str]:
    return {refusal.kind for refusal in unfit.refusals}


def _purpose(cluster: Cluster, option: Option) -> str:
    return next(
        (
            partition.purpose
            for partition in cluster.partitions
            if partition.name == option.partition and option.node_kind in partition.kinds
        ),
        "production",
    )


def label_of(option: Option) -> str:
    """Return the name of an option's partition on screen."""
    return option.label or option.partition or "no partition"


def _name(unfit: Unfit) -> str:
    return unfit.label or unfit.partition or "no partition"


def _instead(refusal: Refusal) -> str:
    if not refusal.instead:
        return ""
    return f" → `{refusal.instead}`" if refusal.instead[:2] == "--" else f" → {refusal.instead}"


def _mark(mark: str, style: str) -> Text:
    return Text.assemble((mark, style), " ")


def _gib(amount: float) -> str:
    return f"{amount:.4g} GiB"
