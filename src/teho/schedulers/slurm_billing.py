"""What Slurm bills for a job, and what a job has for each GPU that does not ask."""

from __future__ import annotations

import re
from collections.abc import Sequence

from teho.errors import UnitError
from teho.model.cluster import Billing, Share, Term
from teho.schedulers.inventory import Host
from teho.schedulers.slurm_rows import Row
from teho.units import mib_text, parse_bytes, parse_mib

__all__ = ["billing_of", "defaults_of"]

_WEIGHT = re.compile(r"([A-Za-z][\w/:.-]*)=(\d+(?:\.\d+)?)([KMGTP]?)", re.ASCII)


def billing_of(row: Row, hosts: Sequence[Host], priority_flags: str) -> Billing | None:
    """Return a partition's bill; None where it has no weights, or the nouns have no word for them.

    The sum of weight × amount over CPUs, memory, nodes and GPUs; with
    `PriorityFlags=MAX_TRES` the largest of them, with `MAX_TRES_GRES` the GPUs and the
    largest of the others (slurm.conf(5), TRESBillingWeights and PriorityFlags).
    """
    weights = row.get("TRESBillingWeights", "")
    terms = [_term(item, hosts) for item in weights.split(",") if item]
    known = tuple(term for term in terms if term is not None)
    if not known or len(known) != len(terms):
        return None
    flags = set(priority_flags.split(","))
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
        notes=f"TRESBillingWeights={weights}, PriorityFlags={priority_flags or 'none'}. What the "
        "site makes of it is not known.",
    )


def _term(item: str, hosts: Sequence[Host]) -> Term | None:
    match = _WEIGHT.fullmatch(item)
    if match is None:
        return None
    name, weight = match[1].lower(), float(match[2])
    threads = {host.cpus_per_core for host in hosts}
    types = {gpu_type.lower() for host in hosts for gpu_type, _ in host.gpus}
    if name == "cpu" and len(threads) == 1:
        return Term(of="cores", times=weight * threads.pop())
    if name == "mem":
        # A weight counts for each MiB, or for each of the unit behind it.
        per_mib = parse_bytes(f"1{match[3] or 'M'}") / 1024**2
        return Term(of="memory_gib", times=weight * 1024 / per_mib)
    if name == "node":
        return Term(of="nodes", times=weight)
    if name == "gres/gpu" or types == {name.removeprefix("gres/gpu:")}:
        return Term(of="gpus", times=weight, gpu_part=True)
    return None


def defaults_of(partitions: Sequence[Row], hosts: Sequence[Host]) -> tuple[Share, ...]:
    """Return what a job has for a GPU when it does not say, where all partitions agree on it.

    Of `DefCpuPerGPU` and `DefMemPerGPU` (slurm.conf(5), JobDefaults).
    """
    found: dict[str, set[tuple[int | None, str | None]]] = {}
    for row in partitions:
        name = row.get("PartitionName", "")
        for host in hosts:
            if name in host.partitions:
                for gpu_type, _ in host.gpus:
                    found.setdefault(gpu_type, set()).add(_default(row, host.cpus_per_core))
    return tuple(
        Share(
            gpu=gpu_type,
            cores=cores,
            memory=memory,
            source="SLURM scontrol show partition: JobDefaults, what a job has that does not ask",
        )
        for gpu_type, sets in found.items()
        if len(sets) == 1
        for cores, memory in sets
        if cores is not None or memory is not None
    )


def _default(row: Row, cpus_per_core: int) -> tuple[int | None, str | None]:
    pairs = dict(re.findall(r"(Def\w+PerGPU)=(\w+)", row.get("JobDefaults", "")))
    cores, memory = pairs.get("DefCpuPerGPU"), pairs.get("DefMemPerGPU")
    try:
        memory_mib = None if memory is None else parse_mib(
            memory if not memory.isdecimal() else f"{memory}M"
        )  # fmt: skip
    except UnitError:
        memory_mib = None
    return (
        int(cores) // cpus_per_core if cores and cores.isdecimal() else None,
        mib_text(memory_mib) if memory_mib else None,
    )
