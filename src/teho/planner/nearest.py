"""Summarise an answer: places that nearly fit, and advice that applies to all options."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from teho.model.cluster import Cluster
from teho.model.plan import Advice, Answer, Option, Unfit
from teho.units import counted

__all__ = [
    "by_distance",
    "common_advice",
    "is_retired",
    "lacks_nodes",
    "left_out",
    "loud_advice",
    "nearly_fitting",
    "purpose_of",
]

_QUIET = frozenset(
    {
        "limit_not_documented",
        "cost_not_documented",
        "time_not_said",
        "energy_is_shared",
        "memory_is_share",
    }
)
"""Advice about gaps of the catalogue, energy and memory, and what a plan's head already says."""


def by_distance(unfit: Iterable[Unfit]) -> list[Unfit]:
    """Return the places that do not fit, first those that need the fewest changes."""
    return sorted(unfit, key=_distance)


def nearly_fitting(unfit: Iterable[Unfit]) -> list[Unfit]:
    """Return the same without retired clusters and places without such nodes."""
    return by_distance(one for one in unfit if not _kinds(one) & {"retired", "no_such_nodes"})


def is_retired(unfit: Unfit) -> bool:
    """Return whether the whole cluster is retired."""
    return "retired" in _kinds(unfit)


def lacks_nodes(unfit: Unfit) -> bool:
    """Return whether missing nodes are the only reason."""
    return _kinds(unfit) <= {"no_such_nodes"}


def _distance(unfit: Unfit) -> tuple[bool, bool, int]:
    return is_retired(unfit), "no_such_nodes" in _kinds(unfit), len(unfit.refusals)


def _kinds(unfit: Unfit) -> set[str]:
    return {refusal.kind for refusal in unfit.refusals}


def loud_advice(option: Option) -> list[Advice]:
    """Return the warnings about the user's request."""
    return [advice for advice in option.advice if advice.kind not in _QUIET]


def common_advice(options: Sequence[Option]) -> tuple[Advice, ...]:
    """Return the advice that all options share."""
    return tuple(
        advice
        for advice in (options[0].advice if options else ())
        if all(advice in option.advice for option in options)
    )


def purpose_of(cluster: Cluster, option: Option) -> str:
    """Return the purpose of an option's partition, such as `production`."""
    return next(
        (
            partition.purpose
            for partition in cluster.partitions
            if partition.name == option.partition and option.node_kind in partition.kinds
        ),
        "production",
    )


def left_out(answer: Answer) -> Iterator[str]:
    """Yield the numbers of partitions and clusters that do not fit, in words."""
    retired = {one.cluster for one in answer.unfit if is_retired(one)}
    places = [one for one in answer.unfit if one.cluster not in retired]
    if places:
        names = {one.cluster for one in places}
        where = f"{counted(len(places), 'partition')} of {counted(len(names), 'cluster')}"
        yield f"{where} {'does' if len(places) == 1 else 'do'} not fit"
    if retired:
        are = "is" if len(retired) == 1 else "are"
        yield f"{counted(len(retired), 'cluster')} {are} retired"
