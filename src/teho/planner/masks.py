"""Check the binding masks in a command against the cluster's cores."""

from __future__ import annotations

from collections.abc import Iterator

from teho.model.plan import Refusal
from teho.patterns import lazy_pattern
from teho.planner.place import Case

__all__ = ["mask_refusals"]

_BINDING = lazy_pattern(r"\b(mask_cpu|map_cpu):([0-9a-fA-Fx,]+)")


def mask_refusals(case: Case) -> Iterator[Refusal]:
    """Yield the mistakes in the `mask_cpu:` and `map_cpu:` lists that the user wrote."""
    binding, kind = case.cluster.binding, case.kind
    if binding is None:
        return
    bound = _bound_cores(" ".join((*case.request.lines, *case.request.command)))
    if bound is None:
        return
    reserved = sorted(bound & {*kind.reserved_cores})
    many = len(reserved) > 1
    if reserved:
        yield Refusal(
            kind="mask_on_reserved_core",
            sentence=f"a mask in `--cpu-bind` uses core{'s' if many else ''} "
            f"{', '.join(map(str, reserved))}; {case.cluster.title} reserves "
            f"{'these cores' if many else 'this core'} for the system",
            source=binding.source,
            instead="leave --cpu-bind out; `--launcher srun` writes the cluster's own masks",
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
    """Return the cores in a command's masks; None if it has no mask.

    Numbers that cannot be read are skipped: the scheduler reports them.
    """
    found: set[int] | None = None
    for form, text in _BINDING.findall(words):
        for item in filter(None, text.split(",")):
            try:
                number = int(item, 16) if form == "mask_cpu" else int(item, 0)
            except ValueError:
                continue
            bits = {bit for bit in range(number.bit_length()) if number >> bit & 1}
            found = (found or set()) | ({number} if form == "map_cpu" else bits)
    return found
