"""A plan for a terminal: the first way that fits, all ways in a table, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.text import Text

from teho.model.cluster import Cluster
from teho.model.document import Cell, Column, Table
from teho.model.plan import Advice, Answer, Option, Unfit
from teho.model.request import Request
from teho.schedulers.script.quoting import bash_command
from teho.show.cells import format_moment
from teho.show.plan_why_text import (
    by_distance,
    cost_words,
    label_of,
    plan_head,
    refused_lines,
)
from teho.show.text.flow import flow, printed, words
from teho.show.text.table import table_lines
from teho.units import MIB, counted

__all__ = ["render_plan"]

_NEAREST = 4
"""Places that do not fit are named with their limits, if nothing fits."""
_QUIET = frozenset({"limit_not_documented", "cost_not_documented", "time_not_said"})
"""Advice on what the catalogue lacks; `--why` has it."""
_MOST = 24
"""Ways in the table."""
_INDENT = Text("  ")
_MEMORY = Column(key="memory", label="Memory", unit="bytes", shown_in="GiB", decimals=0)


def render_plan(
    request: Request,
    answer: Answer,
    clusters: Mapping[str, Cluster],
    typed: Sequence[str] | None = None,
    *,
    width: int,
    color: bool,
) -> str:
    """Render a plan on one screen; ends in a line break.

    Args:
        request: what was asked.
        answer: what the planner says to it.
        clusters: the clusters that it was compared with, by name.
        typed: the words of the command line behind `teho plan`; None: there is no such line.
        width: columns of the terminal.
        color: whether escape codes for colour may be written.
    """
    blocks = [plan_head(request, answer, clusters, width)]
    if answer.options:
        first = answer.options[0]
        for advice in _warnings(first):
            lead = Text.assemble("  ", ("!", "bold yellow"), " ")
            blocks[0] += flow(words(advice.sentence), width, lead)
        if typed is not None:
            blocks[0].append(_next(typed, request.command, first.cluster))
        blocks.append(_ways(answer.options, clusters, width))
    else:
        # The head has the nearest one.
        blocks.append(_next_nearest(by_distance(answer.unfit)[1 : _NEAREST + 1], clusters, width))
    blocks.append(list(_left_out(answer, width)))
    return printed((block for block in blocks if block), width=width, color=color)


def _next(typed: Sequence[str], command: Sequence[str], cluster: str) -> Text:
    """Return the command that writes the batch script of the first way."""
    options = list(typed[: len(typed) - len(command)])
    options = [word for word in options if word not in {"--", "--why"}]
    kept: list[str] = []
    place = 0
    while place < len(options):
        if options[place] == "--cluster":
            place += 2
            continue
        if not options[place].startswith("--cluster="):
            kept.append(options[place])
        place += 1
    argv = ["teho", "plan", *kept, "--cluster", cluster, "--script", "--"]
    told = f"{bash_command(argv)} {bash_command(command) if command else 'COMMAND'} > job.sh"
    return Text.assemble("  → ", (told, "cyan"), no_wrap=True)


def _ways(options: Sequence[Option], clusters: Mapping[str, Cluster], width: int) -> list[Text]:
    warn = [bool(list(_warnings(option))) for option in options[:_MOST]]
    some_warn = any(warn) and not all(warn)
    has_start = any(option.expected_start_at for option in options)
    columns = (
        Column(key="cluster", label="Cluster"),
        Column(key="partition", label="Partition"),
        Column(key="nodes", label="Nodes"),
        *([Column(key="gpus", label="GPUs a node")] if options[0].gpus_per_node else []),
        Column(key="cores", label="Cores"),
        *([_MEMORY] if any(option.memory_mib for option in options) else []),
        Column(key="cost", label="Cost"),
        *([Column(key="start", label="Starts")] if has_start else []),
        *([Column(key="mark", label="!")] if some_warn else []),
    )
    rows = tuple(_row(option, clusters) for option in options[:_MOST])
    table = Table(key="ways", title="All ways that fit", columns=columns, rows=rows)
    lines = table_lines(table, width)
    left = len(options) - _MOST
    note = "Cores and memory are of each node."
    if any(row.get("memory") is None for row in rows) and _MEMORY in columns:
        note += " –: the site sets it."
    if some_warn:
        note += " !: has warnings."
    elif all(warn) and len(warn) > 1:
        note += " All have warnings."
    if left > 0:
        note = f"and {counted(left, 'more way')}; {note}"
    return [*lines, *flow(words(note), width, _INDENT, style="dim")]


def _row(option: Option, clusters: Mapping[str, Cluster]) -> dict[str, Cell]:
    memory = f" {option.gpu_memory_gib:.4g} GiB" if option.gpu_memory_gib else ""
    cores = option.cpus_per_task * option.tasks_per_node
    if option.cost is None:
        cost = "not documented"
    else:
        cost = cost_words(option) if option.cost.unit else "free of charge"
    start = option.expected_start_at
    return {
        "cluster": clusters[option.cluster].title,
        "partition": label_of(option),
        "nodes": option.nodes,
        "gpus": f"{option.gpus_per_node} {option.gpu_type}{memory}",
        "cores": cores,
        "memory": None if option.memory_mib is None else option.memory_mib * MIB,
        "cost": cost,
        "start": format_moment(start) if start else "",
        "mark": "!" if list(_warnings(option)) else "",
    }


def _warnings(option: Option) -> Iterator[Advice]:
    return (advice for advice in option.advice if advice.kind not in _QUIET)


def _next_nearest(
    unfit: Sequence[Unfit], clusters: Mapping[str, Cluster], width: int
) -> list[Text]:
    lines: list[Text] = []
    for name in dict.fromkeys(one.cluster for one in unfit):
        lines.append(Text("  ").append(clusters[name].title, "bold"))
        for one in unfit:
            if one.cluster == name:
                lines += refused_lines(one, width)
    return [Text("Next nearest", "bold"), *lines] if lines else []


def _left_out(answer: Answer, width: int) -> Iterator[Text]:
    """Yield one line that counts what does not fit."""
    retired = {one.cluster for one in answer.unfit if one.refusals[0].kind == "retired"}
    places = [one for one in answer.unfit if one.cluster not in retired]
    told = []
    if places:
        names = {one.cluster for one in places}
        where = f"{counted(len(places), 'partition')} of {counted(len(names), 'cluster')}"
        told.append(f"{where} {'does' if len(places) == 1 else 'do'} not fit")
    if retired:
        are = "is" if len(retired) == 1 else "are"
        told.append(f"{counted(len(retired), 'cluster')} {are} retired")
    first = f"{'; '.join(told)}. " if told else ""
    yield from flow(
        words(f"{first}`--why` shows every limit, bill and source."), width, Text(""), style="dim"
    )
