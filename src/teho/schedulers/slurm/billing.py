"""Read how Slurm bills a job."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from teho.model.cluster import Billing, Term
from teho.patterns import lazy_pattern
from teho.schedulers.inventory import Host
from teho.schedulers.slurm.rows import Row
from teho.units import parse_bytes

__all__ = ["billing_of"]

_WEIGHT = lazy_pattern(r"([A-Za-z][\w/:.-]*)=(\d+(?:\.\d+)?)([KMGTP]?)", re.ASCII)


def billing_of(
    row: Row, hosts: Sequence[Host], priority_flags: str | None, counted: Collection[str]
) -> Billing | None:
    """Return a partition's bill; None: it has no weights, or a `Term` cannot express one.

    The bill is the sum of weight × amount over CPUs, memory, nodes and GPUs. With
    `PriorityFlags=MAX_TRES` it is the largest of them. With `MAX_TRES_GRES` it is the GPUs plus
    the largest of the others (slurm.conf(5), TRESBillingWeights and PriorityFlags).

    Args:
        row: the partition.
        hosts: its nodes.
        counted: types of GPUs that Slurm counts separately.
        priority_flags: None: Slurm does not report them, as with PriorityType=priority/basic.
    """
    weights = row.get("TRESBillingWeights", "")
    terms = [_term(item, hosts, counted) for item in weights.split(",") if item]
    known = tuple(term for term in terms if term is not None)
    if not known or len(known) != len(terms) or (priority_flags is None and len(known) > 1):
        return None
    flags = set((priority_flags or "").split(","))
    gpus = tuple(term for term in known if term.gpu_part)
    others = tuple(term for term in known if not term.gpu_part)
    nothing: tuple[Term, ...] = ()
    if "MAX_TRES" in flags:
        summed, largest = nothing, known
    elif "MAX_TRES_GRES" in flags:
        summed, largest = gpus, others
    else:
        summed, largest = known, nothing
    return Billing(
        unit="billing-hours",
        sum=summed,
        largest=largest,
        source="SLURM scontrol show partition: TRESBillingWeights; scontrol show config",
        notes=f"TRESBillingWeights={weights}, PriorityFlags={priority_flags or 'none'}. It "
        "is not known how the site charges for billing-hours.",
    )


def _term(item: str, hosts: Sequence[Host], counted: Collection[str]) -> Term | None:
    match = _WEIGHT.fullmatch(item)
    if match is None:
        return None
    name, weight = match[1].lower(), float(match[2])
    if name == "cpu":
        threads = any(host.cpus_per_core > 1 for host in hosts)
        return Term(quantity="cpus" if threads else "cores", times=weight)
    if name == "mem":
        # A weight is for 1 MiB, or for 1 of the unit that follows it.
        per_mib = parse_bytes(f"1{match[3] or 'M'}") / 1024**2
        return Term(quantity="memory_gib", times=weight * 1024 / per_mib)
    if name == "node":
        return Term(quantity="nodes", times=weight)
    if name == "gres/gpu":
        return Term(quantity="gpus", times=weight, gpu_part=True)
    types = {one.lower(): one for one in counted}
    gpu_type = types.get(name.removeprefix("gres/gpu:"))
    if name.startswith("gres/gpu:") and gpu_type:
        return Term(quantity="gpus", gpu_type=gpu_type, times=weight, gpu_part=True)
    return None
