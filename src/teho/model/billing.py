"""How a cluster bills a job."""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["Billing", "Quantity", "Term"]

Quantity = Literal[
    "nodes", "gpus", "weighted_gpus", "cores", "cpus", "memory_gib", "local_disk_gib"
]
"""What a bill can count. `weighted_gpus`: GPUs times the `weight` of their type. `cpus`: CPUs as
the scheduler counts them, which may be threads."""


class Term(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One term of a bill: `of × times ÷ per`, rounded up if `up` is set."""

    quantity: Quantity = msgspec.field(name="of")  # the key in a cluster's file
    gpu_type: str = ""
    """If `of` is `gpus`: count only GPUs of this type. Empty: all types."""
    times: float = 1.0
    per: float = 1.0
    up: bool = False
    gpu_part: bool = False
    """Whether this term is the cost of the GPUs themselves."""


class Billing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The bill for one hour: `scale × (sum + largest)`.

    All terms of the list `sum` are added. From the list `largest`, only the largest term is added.
    """

    unit: str
    """The site's billing unit, such as `GPU BU`."""
    sum: tuple[Term, ...] = ()
    largest: tuple[Term, ...] = ()
    scale: float = 1.0
    source: str
    notes: str = ""
