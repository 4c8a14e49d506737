"""Compute what a job costs in the site's unit, and write the formula."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from teho.model.cluster import Billing, Term
from teho.model.plan import Cost
from teho.units import plural

__all__ = ["BilledUse", "bill"]


class BilledUse(msgspec.Struct, frozen=True, kw_only=True):
    """What a job uses, on all its nodes together."""

    nodes: int
    gpus: tuple[tuple[str, int], ...] = ()
    """Types, each with its count."""
    gpu_weight: float = 1.0
    cores: int = 0
    cpus: int = 0
    """CPUs as the scheduler counts them."""
    memory_gib: float = 0.0
    local_disk_gib: float = 0.0
    hours: float


_WORDS = {
    "nodes": ("node", "nodes"),
    "gpus": ("GPU", "GPUs"),
    "weighted_gpus": ("GPU weight", "GPU weight"),
    "cores": ("core", "cores"),
    "cpus": ("CPU", "CPUs"),
    "memory_gib": ("GiB memory", "GiB memory"),
    "local_disk_gib": ("GiB disk", "GiB disk"),
}


def bill(billing: Billing, use: BilledUse) -> Cost:
    """Compute the bill of a job that runs for `use.hours`.

    The formula is `scale × (the sum of the terms + the largest of the others) × hours`, as on the
    site's page (`billing.source`).
    """
    values = {term: _value(term, use) for term in (*billing.sum, *billing.largest)}
    largest = max((values[term] for term in billing.largest), default=0.0)
    hourly = billing.scale * (sum(values[term] for term in billing.sum) + largest)
    amount = hourly * use.hours
    formula = _written(billing, use, values)
    # The GPUs' part of a largest-of list is their term, even if it is not the largest: the rest of
    # the bill is what other requests add.
    parts = [values[term] for term in (*billing.sum, *billing.largest) if term.gpu_part]
    gpu_share = min(1.0, billing.scale * sum(parts) / hourly) if parts and hourly > 0 else None
    return Cost(
        amount=amount,
        unit=billing.unit,
        sum=f"{formula} = {_number(amount)} {plural(billing.unit, amount)}",
        gpu_share=gpu_share,
        source=billing.source,
    )


def _quantity(term: Term, use: BilledUse) -> float:
    if term.quantity == "gpus":
        # Slurm writes the types that it counts in lower case.
        own = (n for name, n in use.gpus if term.gpu_type.lower() in {"", name.lower()})
        return float(sum(own))
    if term.quantity == "weighted_gpus":
        return sum(count for _, count in use.gpus) * use.gpu_weight
    return float(getattr(use, term.quantity))


def _value(term: Term, use: BilledUse) -> float:
    share = _quantity(term, use) / term.per
    return term.times * (math.ceil(share) if term.up else share)


def _written(billing: Billing, use: BilledUse, values: Mapping[Term, float]) -> str:
    parts = [_term(term, use) for term in billing.sum if values[term]]
    if billing.largest:
        terms = [_term(term, use) for term in billing.largest if values[term]] or ["0"]
        parts.append(f"max({', '.join(terms)})" if len(terms) > 1 else terms[0])
    inner = " + ".join(parts) or "0"
    scale = "" if billing.scale == 1 else f"{_number(billing.scale)} × "
    inner = f"({inner})" if len(parts) > 1 or " + " in inner else inner
    return f"{scale}{inner} × {_number(use.hours)} h"


def _term(term: Term, use: BilledUse) -> str:
    amount = _quantity(term, use)
    words = f"{term.gpu_type} {_WORDS[term.quantity][amount != 1]}".strip()
    text = f"{_number(amount)} {words}"
    if term.per != 1:
        text += f" / {_number(term.per)}"
        text = f"⌈{text}⌉" if term.up else text
    return text if term.times == 1 else f"{text} × {_number(term.times)}"


def _number(value: float) -> str:
    return f"{value:,.10g}" if value == int(value) else f"{value:,.4g}"
