"""Every rule: each file in the folders of `teho.explain.rules`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from graphlib import TopologicalSorter
from typing import cast

from teho.explain import rules
from teho.explain.rule import Rule, kind_of

__all__ = ["BY_KIND", "RULES", "in_judging_order", "mutes_of", "same_loss_as"]


def _found() -> Iterator[Rule]:
    for folder in pkgutil.iter_modules(rules.__path__, f"{rules.__name__}."):
        package = importlib.import_module(folder.name)
        for file in pkgutil.iter_modules(package.__path__, f"{folder.name}."):
            yield cast("Rule", importlib.import_module(file.name))


RULES: tuple[Rule, ...] = tuple(sorted(_found(), key=lambda rule: rule.RANK))
"""Every rule, by its rank."""
BY_KIND = {kind_of(rule): rule for rule in RULES}


def mutes_of(rule: Rule) -> tuple[str, ...]:
    """Return the kinds of the rules that a finding of this rule mutes."""
    return tuple(getattr(rule, "MUTES", ()))


def same_loss_as(rule: Rule) -> frozenset[str]:
    """Return the kinds of the rules that claim the same time as this one."""
    return frozenset(getattr(rule, "SAME_LOSS_AS", ()))


def in_judging_order() -> tuple[Rule, ...]:
    """Return every rule, each rule after the rules that may mute it.

    Raises:
        graphlib.CycleError: rules mute each other in a circle.
    """
    sorter = TopologicalSorter({kind: set[str]() for kind in BY_KIND})
    for rule in RULES:
        for kind in mutes_of(rule):
            sorter.add(kind, kind_of(rule))
    return tuple(BY_KIND[kind] for kind in sorter.static_order())
