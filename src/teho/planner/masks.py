"""Binding masks that a command brings along: are they right for the cluster's cores?"""

from __future__ import annotations

import re
from collections.abc import Iterator

from teho.model.plan import Refusal
from teho.planner.shape import Case

__all__ = ["mask_refusals"]

_BINDING = re.compile(r"\b(mask_cpu|map_cpu):([0-9a-fA-Fx,]+)")


def mask_refusals(case: Case) -> Iterator[Refusal]:
    """Yield what is wrong with the `mask_cpu:` and `map_cpu:` lists of the user's own words."""
    binding, kind = case.cluster.binding, case.kind
    if binding is None:
        return
    bound = _bound_cores(" ".join((*case.request.lines, *case.request.command)))
    if bound is None:
        return
    reserved = sorted(bound & {*kind.reserved_cores})
    if reserved:
        yield Refusal(
            kind="mask_on_reserved_core",
            sentence=f"a mask in `--cpu-bind` uses core{'s' if len(reserved) > 1 else ''} "
            f"{', '.join(map(str, reserved))}; {case.cluster.title} reserves "
            f"{'them' if len(reserved) > 1 else 'it'} for the system",
            source=binding.source,
            instead="leave --cpu-bind out; `--launcher srun` writes the site's own masks",
        )
    if binding.only_exclusive and not case.has_whole_nodes:
        yield Refusal(
            kind="mask_on_shared_node",
            sentence=f"a mask in `--cpu-bind` names cores of a whole node; a job in {case.where} "
            "may have only a part of a node",
            source=binding.source,
            instead="leave --cpu-bind out",
        )


def _bound_cores(words: str) -> set[int] | None:
    """Return the cores that a command's masks name; None if it has no mask.

    A list that does not read is left to the scheduler.
    """
    found: set[int] | None = None
    for form, text in _BINDING.findall(words):
        for item in filter(None, text.split(",")):
            try:
                number = int(item, 16) if form == "mask_cpu" else int(item, 0)
            except ValueError:
                continue
            cores = {number} if form == "map_cpu" else _bits(number)
            found = (found or set()) | cores
    return found


def _bits(mask: int) -> set[int]:
    return {bit for bit in range(mask.bit_length()) if mask >> bit & 1}
