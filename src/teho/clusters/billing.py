"""What a job costs, in the site's own units, with the sum written out."""

from __future__ import annotations

import math

import msgspec

from teho.model.cluster import Billing, Term
from teho.model.plan import Cost
from teho.units import plural

__all__ = ["BilledUse", "bill"]


class BilledUse(msgspec.Struct, frozen=True, kw_only=True):
    """What a job holds, on all its nodes together."""

    nodes: int
    gpus: tuple[tuple[str, int], ...] = ()
    """Types, each with its count."""
    gpu_weight: float = 1.0
    cores: int = 0
    cpus: int = 0
    """As the scheduler counts them."""
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

    `scale × (the sum of the terms + the largest of the others) × hours`, as the
    site's own page gives it (`billing.source`).
    """
    summed = [(term, _value(term, use)) for term in billing.sum]
    rivals = [(term, _value(term, use)) for term in billing.largest]
    largest = max((value for _, value in rivals), default=0.0)
    hourly = billing.scale * (sum(value for _, value in summed) + largest)
    amount = hourly * use.hours
    return Cost(
        amount=amount,
        unit=billing.unit,
        sum=_written(billing, use, summed, rivals)
        + f" = {_number(amount)} {plural(billing.unit, amount)}",
        gpu_share=_gpu_share(billing, summed, rivals, hourly),
        source=billing.source,
    )


def _quantity(term: Term, use: BilledUse) -> float:
    if term.of == "gpus":
        # Slurm writes the types that it counts in small letters.
        own = (n for name, n in use.gpus if term.gpu_type.lower() in {"", name.lower()})
        return float(sum(own))
    if term.of == "weighted_gpus":
        return sum(count for _, count in use.gpus) * use.gpu_weight
    return float(getattr(use, term.of))


def _value(term: Term, use: BilledUse) -> float:
    share = _quantity(term, use) / term.per
    return term.times * (math.ceil(share) if term.up else share)


def _gpu_share(
    billing: Billing,
    summed: list[tuple[Term, float]],
    rivals: list[tuple[Term, float]],
    hourly: float,
) -> float | None:
    """Return the part that the GPUs are; None if no term says that it is theirs.

    Of a largest-of list the GPUs' part is their own term, whichever is largest: the
    rest of the bill is what other requests add to it.
    """
    parts = [value for term, value in (*summed, *rivals) if term.gpu_part]
    if not parts or hourly <= 0:
        return None
    return min(1.0, billing.scale * sum(parts) / hourly)


def _written(
    billing: Billing,
    use: BilledUse,
    summed: list[tuple[Term, float]],
    rivals: list[tuple[Term, float]],
) -> str:
    parts = [_term(term, use) for term, value in summed if value]
    if rivals:
        terms = [_term(term, use) for term, value in rivals if value] or ["0"]
        parts.append(f"max({', '.join(terms)})" if len(terms) > 1 else terms[0])
    inner = " + ".join(parts) or "0"
    scale = "" if billing.scale == 1 else f"{_number(billing.scale)} × "
    inner = f"({inner})" if len(parts) > 1 or " + " in inner else inner
    return f"{scale}{inner} × {_number(use.hours)} h"


def _term(term: Term, use: BilledUse) -> str:
    amount = _quantity(term, use)
    words = f"{term.gpu_type} {_WORDS[term.of][amount != 1]}".strip()
    text = f"{_number(amount)} {words}"
    if term.per != 1:
        text += f" / {_number(term.per)}"
        text = f"⌈{text}⌉" if term.up else text
    return text if term.times == 1 else f"{text} × {_number(term.times)}"


def _number(value: float) -> str:
    return f"{value:,.10g}" if value == int(value) else f"{value:,.4g}"
