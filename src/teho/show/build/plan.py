"""A plan as a document: the first way that fits, a table of all ways, and the broken limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from teho.clusters.size import cores_per_gpu
from teho.explain.wording import capital
from teho.model.cluster import Cluster
from teho.model.document import Document, Fact, Item, Listing, Table
from teho.model.plan import Advice, Answer, Option, Unfit
from teho.model.request import Request
from teho.planner.nearest import (
    by_distance,
    common_advice,
    is_retired,
    lacks_nodes,
    left_out,
    loud_advice,
    nearly_fitting,
    purpose_of,
)
from teho.schedulers.registry import scheduler_of
from teho.schedulers.script.quoting import bash_command
from teho.show.build.layout import column, document, listing, table
from teho.show.build.plan_words import (
    bill_words,
    cost_words,
    instead_words,
    label_of,
    limits_of,
    request_words,
    resource_words,
    waiting_words,
)
from teho.show.cells import format_moment
from teho.units import MIB, counted, format_duration

__all__ = ["plan_document"]

_NEAREST = 4
"""If nothing fits, as many partitions are named with their limits."""
_NOT_DOCUMENTED = frozenset({"limit_not_documented", "cost_not_documented"})
_REMARKS = frozenset({"memory_is_share", "energy_is_shared"})
"""Advice that is not a warning."""
_MOST = 24
"""Number of ways in the table on a terminal."""


def plan_document(
    request: Request,
    answer: Answer,
    clusters: Mapping[str, Cluster],
    typed: Sequence[str] | None = None,
) -> Document:
    """Lay out a plan.

    Args:
        request: what was asked for.
        answer: the answer of the planner.
        clusters: the clusters that the planner examined, by name.
        typed: the words of the command line after `teho plan`; None: not called from one.
    """
    options = answer.options
    left = "; ".join(left_out(answer))
    return document(
        title="teho plan",
        verdict=_fits(options[0], clusters) if options else _nearest(answer, clusters),
        verdict_severity="good" if options else "critical",
        facts=tuple(_facts(request, options)),
        tables=(_ways(options, clusters),) if options else (),
        lists=(
            listing("next", "Next", _next(request, options, typed), "first"),
            listing(
                "nearest",
                "Next best matches",
                () if options else _next_nearest(answer, clusters),
            ),
            *_by_cluster(options, clusters),
            listing("unfit", "Does not fit", _unfit(answer, clusters), "why"),
            listing(
                "retired",
                "Retired",
                [
                    f"{one.refusals[0].sentence}{instead_words(one.refusals[0])}"
                    for one in answer.unfit
                    if is_retired(one)
                ],
                "why",
            ),
        ),
        notes=(f"{left}.",) if left else (),
    )


def _fits(first: Option, clusters: Mapping[str, Cluster]) -> str:
    cost = f". Cost: {cost_words(first)}" if first.cost and first.cost.unit else ""
    return f"The job fits on {_place(first, clusters)}: {resource_words(first)}{cost}"


def _nearest(answer: Answer, clusters: Mapping[str, Cluster]) -> str:
    """Return the verdict if nothing fits: the limit that is nearest to the request."""
    if not answer.unfit:
        return "No partition fits: the catalogue has no cluster"
    nearest = by_distance(answer.unfit)[0]
    refusal = nearest.refusals[0]
    if refusal.kind == "retired":
        return f"No partition fits: {refusal.sentence}{instead_words(refusal)}"
    where = clusters[nearest.cluster].title
    if nearest.label or nearest.partition:
        where = _place(nearest, clusters)
    return (
        f"No partition fits. The best match is {where}: {refusal.sentence}{instead_words(refusal)}"
    )


def _place(place: Option | Unfit, clusters: Mapping[str, Cluster]) -> str:
    """Name a cluster and its partition: `Birch, partition gpu`."""
    cluster = clusters[place.cluster]
    is_name = place.partition and label_of(place).startswith(place.partition)
    noun = f"{scheduler_of(cluster.scheduler).partition_word} " if is_name else ""
    return f"{cluster.title}, {noun}{label_of(place)}"


def _facts(request: Request, options: Sequence[Option]) -> Iterator[Fact]:
    names = {option.cluster for option in options}
    if len(options) > 1:
        on = f" on {len(names)} clusters" if len(names) > 1 else ""
        more = f"{len(options)} options{on} fit. This is the first one in the table below"
        known = [one.gpu_memory_gib for one in options if one.gpu_memory_gib]
        if len(names) > 1 and request.gpus and options[0].gpu_memory_gib == min(known, default=0):
            more += ", because no other option has a GPU with less memory"
        yield Fact("ways", "", more)
    yield Fact("asked", "You asked for", request_words(request))


def _next(
    request: Request, options: Sequence[Option], typed: Sequence[str] | None
) -> Iterator[Item]:
    for advice in loud_advice(options[0]) if options else ():
        yield Item(text=_whole(advice.sentence), severity="warning")
    if options and typed is not None:
        command = _script_command(typed, request.command, options[0].cluster)
        yield Item(text="", code=(command,))


def _script_command(typed: Sequence[str], command: Sequence[str], cluster: str) -> str:
    """Return the command that writes the batch script of the first way."""
    words = list(typed[: len(typed) - len(command)])
    words = [word for word in words if word not in {"--", "--why", "--short"}]
    kept: list[str] = []
    place = 0
    while place < len(words):
        if words[place] in {"--cluster", "-o", "--output", "--format"}:
            place += 2
            continue
        if not words[place].startswith(("--cluster=", "--output=", "--format=")):
            kept.append(words[place])
        place += 1
    argv = ["teho", "plan", *kept, "--cluster", cluster, "--script", "--"]
    return f"{bash_command(argv)} {bash_command(command) if command else 'COMMAND'} > job.sh"


def _ways(options: Sequence[Option], clusters: Mapping[str, Cluster]) -> Table:
    warn = [bool(loud_advice(option)) for option in options[:_MOST]]
    some_warn = any(warn) and not all(warn)
    has_wait = any(_past_wait(option) for option in options)
    shown = table(
        "ways",
        "All options that fit",
        options,
        column("cluster", "Cluster", lambda one: clusters[one.cluster].title),
        column("partition", "Partition", label_of),
        column("nodes", "Nodes", lambda one: one.nodes, spare=True),
        column("gpus", "GPUs per node", _gpus) if options[0].gpus_per_node else None,
        column("cores", "Cores", lambda one: one.cpus_per_task * one.tasks_per_node, spare=True),
        column(
            "memory",
            "Memory",
            lambda one: one.memory_mib and one.memory_mib * MIB,
            unit="bytes",
            shown_in="GiB",
            decimals=0,
        )
        if any(option.memory_mib for option in options)
        else None,
        column("cost", "Cost", _cost),
        column("start", "Starts", _start)
        if any(option.expected_start_at for option in options)
        else None,
        column("wait", "Past wait", _past_wait) if has_wait else None,
        column("mark", "!", lambda one: "!" * bool(loud_advice(one))) if some_warn else None,
    )
    note = "Cores and memory are per node."
    if any(row.get("memory", 0) is None for row in shown.rows):
        note += " – means that the cluster sets this value."
    if has_wait:
        note += (
            " The column Past wait shows the median waiting time of your similar jobs in the last "
            "90 days."
        )
    if some_warn:
        note += " ! means that this option has warnings."
    elif all(warn) and len(warn) > 1:
        note += " All options have warnings: `--why` shows the warnings."
    left = len(options) - _MOST
    return msgspec.structs.replace(
        shown,
        note=note,
        shown=tuple(range(min(len(options), _MOST))),
        rest=f"and {counted(left, 'more option')}" if left > 0 else "",
    )


def _gpus(option: Option) -> str:
    memory = f" {option.gpu_memory_gib:.4g} GiB" if option.gpu_memory_gib else ""
    return f"{option.gpus_per_node} {option.gpu_type}{memory}"


def _start(option: Option) -> str:
    return format_moment(option.expected_start_at) if option.expected_start_at else ""


def _cost(option: Option) -> str:
    if option.cost is None:
        return "not documented"
    return cost_words(option) if option.cost.unit else "free of charge"


def _past_wait(option: Option) -> str:
    return format_duration(option.past_wait.median_s) if option.past_wait else ""


def _by_cluster(options: Sequence[Option], clusters: Mapping[str, Cluster]) -> Iterator[Listing]:
    """Yield a list for each cluster: its ways with their bills, then the remarks on all of them."""
    names = dict.fromkeys(option.cluster for option in options)
    everywhere = common_advice(options) if len(names) > 1 else ()
    if everywhere:
        items = [item for advice in everywhere for item in _advice(advice)]
        yield listing("everywhere", "On all clusters", items, "why")
    for name in names:
        own = [option for option in options if option.cluster == name]
        cluster = clusters[name]
        shared = common_advice(own)
        remarks = [
            item for advice in shared if advice not in everywhere for item in _advice(advice)
        ]
        bills = dict.fromkeys(one.cost.source for one in own if one.cost and one.cost.source)
        if (each := cores_per_gpu(cluster)) and any(one.gpus_per_node for one in own):
            remarks.append(
                Item(
                    text=f"For each GPU, {cluster.title} has {each:,} cores in nodes without GPUs. "
                    "So a job that needs only cores usually starts earlier than a job with a GPU. "
                    "`teho compare` measures whether cores are enough for your program"
                )
            )
        if bills:
            remarks.append(Item(text=f"source of the prices: {'; '.join(bills)}"))
        ways = (_way(option, cluster, shared) for option in own)
        title = f"{_called(cluster)}, {cluster.site}"
        yield listing("cluster", title, (*ways, *remarks), "why")


def _way(option: Option, cluster: Cluster, shared: Sequence[Advice]) -> Item:
    purpose = purpose_of(cluster, option)
    own = [advice for advice in option.advice if advice not in shared]
    details = [bill_words(option), waiting_words(option)]
    details += [_advice_words(advice) for advice in own if advice.kind != "time_not_said"]
    details += [f"not known here: {'; '.join(option.unknown)}"] if option.unknown else []
    return Item(
        lead=label_of(option),
        text=resource_words(option) + (f" ({purpose})" if purpose != "production" else ""),
        details=tuple(filter(None, details)),
    )


def _advice(advice: Advice) -> Iterator[Item]:
    """Yield a warning with its source, if the head of the plan does not have it."""
    if advice.kind in _NOT_DOCUMENTED:
        yield Item(text=advice.sentence)
    elif advice.kind != "time_not_said":
        remark = advice.kind in _REMARKS
        yield Item(
            text=_whole(advice.sentence),
            severity="" if remark else "warning",
            details=(advice.source,),
        )


def _whole(sentence: str) -> str:
    """Return a warning with a capital and a full stop."""
    return f"{capital(sentence)}{'' if sentence.endswith('.') else '.'}"


def _advice_words(advice: Advice) -> str:
    if advice.kind in _NOT_DOCUMENTED:
        return advice.sentence
    mark = "" if advice.kind in _REMARKS else "! "
    return f"{mark}{_whole(advice.sentence)} · {advice.source}"


def _next_nearest(answer: Answer, clusters: Mapping[str, Cluster]) -> Iterator[Item]:
    # The verdict has the nearest one.
    for unfit in nearly_fitting(answer.unfit)[1 : _NEAREST + 1]:
        yield from _limits(unfit, clusters)


def _unfit(answer: Answer, clusters: Mapping[str, Cluster]) -> Iterator[Item]:
    """Yield every limit that the request breaks, the nearest cluster and partition first."""
    places = [one for one in by_distance(answer.unfit) if not is_retired(one)]
    for name in dict.fromkeys(one.cluster for one in places):
        own = [one for one in places if one.cluster == name]
        others = [one for one in own if lacks_nodes(one)]
        for one in own:
            if one not in others or len(others) == 1:
                yield from _limits(one, clusters)
        if len(others) > 1:
            labels = ", ".join(map(label_of, others))
            yield Item(
                lead=clusters[name].title, text=f"these partitions have no suitable nodes: {labels}"
            )


def _limits(unfit: Unfit, clusters: Mapping[str, Cluster]) -> Iterator[Item]:
    for text, source in limits_of(unfit):
        yield Item(lead=_place(unfit, clusters), text=text, details=(source,) if source else ())


def _called(cluster: Cluster) -> str:
    """Return the title of a cluster, and its name if this is another word."""
    same = cluster.title.lower() == cluster.name
    return cluster.title if same else f"{cluster.title} ({cluster.name})"
