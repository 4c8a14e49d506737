"""The findings that cost the most GPU hours, and what to do about them."""

from __future__ import annotations

import msgspec

from teho.model.listed_run import Totals
from teho.show.html.markup import advice
from teho.show.portal.query import ListQuery
from teho.show.portal.rows import Row, row_of
from teho.show.portal.words import finding_text
from teho.store.search import RunFilter, Search

__all__ = ["Saving", "savings_of"]

_MOST = 3


class Saving(msgspec.Struct, frozen=True, kw_only=True):
    """All runs with the same most important finding."""

    finding: str
    """In words."""
    address: str
    """Of the list with only these runs, the run with the most unused GPU hours first."""
    unused_gpu_hours: float
    """GPU hours in which no kernel ran."""
    runs: int
    largest: Row
    """The run with the most unused GPU hours."""
    advice: str
    """What to do about the finding in this run, as HTML; empty: not known."""


def savings_of(
    search: Search, wanted: RunFilter, *, since: str = "", scope: str = ""
) -> list[Saving]:
    """Return the findings with the most unused GPU hours, at most three.

    Args:
        search: the runs.
        wanted: which runs count.
        since: the earliest start, for the address of the list.
        scope: `group`: these are the shared runs of the group.
    """
    costly = sorted(
        ((_unused(one), one) for one in search.totals("kind", wanted) if one.key),
        key=lambda pair: pair[0],
        reverse=True,
    )
    found = []
    for unused, total in costly[:_MOST]:
        own = msgspec.structs.replace(wanted, kind=total.key)
        runs = search.find(own, sort="unused", limit=1) if unused > 0 else ()
        found += [_saving(unused, total, row_of(run, scope=scope), since, scope) for run in runs]
    return found


def _unused(total: Totals) -> float:
    if not total.measured_gpu_hours or total.busy_gpu_hours is None:
        return 0.0
    return total.measured_gpu_hours - total.busy_gpu_hours


def _saving(unused: float, total: Totals, largest: Row, since: str, scope: str) -> Saving:
    judged = largest.run.judged
    query = ListQuery(kind=total.key, since=since, scope=scope)
    return Saving(
        finding=finding_text(total.key),
        address=query.address(sort="unused"),
        unused_gpu_hours=unused,
        runs=total.runs,
        largest=largest,
        advice=advice(judged.advice) if judged and judged.advice else "",
    )
