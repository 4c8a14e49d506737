"""The fields of the filter, the headings and the paging of a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from teho.show.portal.languages import say
from teho.show.portal.query import PAGE_ROWS, ListQuery
from teho.show.portal.words import OUTCOMES, finding_text
from teho.store.search import CHOICES

__all__ = ["MORE_FILTERS", "ORDERS", "filter_fields", "heading", "paging"]

_LABELS = {
    "outcome": "End",
    "kind": "Finding",
    "user": "User",
    "cluster": "Cluster",
    "partition": "Partition",
    "account": "Project",
    "gpu": "GPU",
}
ORDERS = {
    "began": "Began",
    "time": "Time",
    "gpus": "GPUs",
    "gpu_hours": "GPU hours",
    "unused": "GPU hours without a kernel",
    "busy": "GPU busy",
    "energy": "GPU energy",
    "cost": "Cost",
    "finding": "Verdict",
    "outcome": "End",
    "name": "Name",
    "tags": "Tags",
    "command": "Program",
    "user": "User",
    "cluster": "Cluster",
    "partition": "Partition",
    "account": "Project",
    "gpu": "GPU",
}
"""Name of each order of the list, and its label."""
_OF_TEXT = frozenset(list(ORDERS)[list(ORDERS).index("finding") :])
"""Orders by a text: A is first at the first click."""
MORE_FILTERS = (
    ("tag", "Tag", "seed=7"),
    ("until", "Until", "2026-11-20"),
    ("longer", "Time at least", "1h"),
    ("cost", "Cost at least", "10"),
)
"""Filters that the form shows on request: name, label, and an example."""


def heading(query: ListQuery, sort: str, label: str) -> dict[str, str]:
    """Return a heading of the list: a second click turns the order round."""
    is_sorted = query.sort == sort
    first, second = ("asc", "desc") if sort in _OF_TEXT else ("desc", "asc")
    turned = second if is_sorted and query.order == first else first
    state = {"desc": "descending", "asc": "ascending"}[query.order] if is_sorted else ""
    return {"label": label, "address": query.address(sort=sort, order=turned), "state": state}


def paging(query: ListQuery, count: int) -> dict[str, Any]:
    """Return the number of runs, which of them the page shows, and the pages around it."""
    first = (query.page - 1) * PAGE_ROWS
    last = min(count, first + PAGE_ROWS)
    return {
        "count": count,
        "shown": f"{first + 1:,}–{last:,} of {count:,}" if count > PAGE_ROWS else "",
        "before": query.address(page=query.page - 1) if query.page > 1 else "",
        "after": query.address(page=query.page + 1) if last < count else "",
    }


def filter_fields(
    query: ListQuery, choices: Mapping[str, Sequence[tuple[str, int]]]
) -> dict[str, Any]:
    """Return the fields of the filter; a choice with one value and no filter is left out."""
    given = msgspec.to_builtins(query)
    fields = []
    for column in CHOICES:
        values = [
            (value, f"{_value_label(column, value)} ({count:,})")
            for value, count in choices.get(column, ())
        ]
        chosen = getattr(query, column)
        if chosen and chosen not in dict(values):
            values.append((chosen, _value_label(column, chosen)))
        if len(values) > 1 or chosen:
            fields.append((column, _LABELS[column], values, chosen))
    hidden = [(key, value) for key, value in given.items() if key in {"of", "by", "command"}]
    more = [(name, label, example, given.get(name, "")) for name, label, example in MORE_FILTERS]
    names = {name for name, *_ in more}
    active = [key for key in given if key in {"text", "since", "command", *CHOICES, *names}]
    return {
        "fields": fields,
        "more_filters": more,
        "has_more": any(key in names for key in active),
        "orders": ORDERS if query.by != "program" else {},
        "hidden": hidden,
        "is_filtered": bool(active),
        "all_runs": ListQuery(scope=query.scope, by=query.by).address(),
        "as_runs": query.address(by=""),
        "as_programs": query.address(by="program"),
    }


def _value_label(column: str, value: str) -> str:
    if column == "outcome":
        return say(OUTCOMES.get(value, value))
    return finding_text(value) if column == "kind" else value
