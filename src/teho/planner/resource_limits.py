"""Compare a job's allocation with the limits of QOS and associations, by resource (TRES)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from teho.model.plan import Given, Refusal
from teho.planner.allocated import cpus_per_core, given_by_kind
from teho.planner.place import Case
from teho.planner.slurm_limits import Limit
from teho.units import counted, format_mib

__all__ = ["LIMITS_SOURCE", "resource_refusals", "unsure_limits"]

LIMITS_SOURCE = "`sacctmgr show qos` and `sacctmgr show associations`"


class _Range(NamedTuple):
    """The job's amount of a resource, on the possible kinds of node."""

    least: int
    most: int


class _Comparison(NamedTuple):
    """A limit, and the job's amount of this resource."""

    what: str
    limit: Limit
    given: _Range | None
    """None: the plan does not know the amount."""
    per: str
    """`per job` or `per node`; empty: the limit is a minimum."""

    @property
    def violations(self) -> set[bool]:
        """Whether the job violates the limit, on each possible kind of node."""
        if self.given is None:
            return {True, False}
        number = self.limit.most
        return {own > number if self.per else own < number for own in self.given}


def resource_refusals(case: Case) -> Iterator[Refusal]:
    """Yield the limits that the job's allocation violates."""
    for one in _comparisons(case):
        if one.violations == {True} and one.given is not None:
            limit = _amount(one.what, one.limit.most)
            if one.per:
                given = _amount(one.what, one.given.least)
                sentence = f"{given}, more than the limit of {limit} {one.per}"
            else:
                given = _amount(one.what, one.given.most)
                sentence = f"{given}, less than the minimum of {limit}"
            yield Refusal(
                kind="limit",
                sentence=f"the job has {sentence} ({one.limit.setter})",
                source=LIMITS_SOURCE,
            )


def unsure_limits(case: Case) -> Iterator[str]:
    """Yield in a few words each limit that may refuse or delay the job."""
    for one in _comparisons(case):
        if one.violations == {True, False}:
            amount = _amount(one.what, one.limit.most)
            verb = "stays within the limit of" if one.per else "reaches the minimum of"
            bound = f"{verb} {amount} {one.per}".rstrip()
            why = "the allocation of the job depends on the node"
            if one.given is None:
                why = f"Teho does not know how much {one.what} the job gets"
            yield f"whether the job {bound} ({one.limit.setter}): {why}"
    most, threads = case.partition.max_cpus_per_node, case.kind.threads_per_core
    if most is not None and most % threads and case.shape.gpus_per_node:
        # Slurm 22.05 refuses GPUs with some even numbers of CPUs there, and accepts others.
        yield (
            f"whether Slurm accepts a job with GPUs: the limit of {most} CPUs per node is not a "
            f"whole number of cores (each core has {threads} CPUs)"
        )


def _comparisons(case: Case) -> Iterator[_Comparison]:
    limits, nodes = case.limits, case.shape.nodes
    if not (limits.job or limits.node or limits.least):
        return
    of_node = _given(case)
    of_job = {what: _Range(nodes * one.least, nodes * one.most) for what, one in of_node.items()}
    of_job["node"] = _Range(nodes, nodes)
    for given, most, per in (
        (of_job, limits.job, "per job"),
        (of_node, limits.node, "per node"),
        (of_job | _requested_of_whole_nodes(case), limits.least, ""),
    ):
        for what, limit in most.items():
            yield _Comparison(what, limit, given.get(what), per)


def _given(case: Case) -> dict[str, _Range]:
    """Return the amounts that Slurm counts per node, by trackable resource."""
    found: dict[str, _Range] = {}
    for given in given_by_kind(case):
        for what, own in _counted(case, given).items():
            before = found.get(what, own)
            found[what] = _Range(min(before.least, own.least), max(before.most, own.most))
    return found


def _requested_of_whole_nodes(case: Case) -> dict[str, _Range]:
    """Return the request of a job on whole nodes, which is less than its allocation.

    Slurm 22.05 compares a minimum with the request when the job is submitted.
    """
    if not case.has_whole_nodes:
        return {}
    shape, gpu = case.shape, case.kind.gpu
    cpus = shape.nodes * cpus_per_core(case).cpus * shape.cores_per_node
    gpus = [(gpu.type if gpu else "", shape.nodes * shape.gpus_per_node)]
    return {"cpu": _Range(cpus, cpus), **_gpus(case, gpus)}


def _counted(case: Case, given: Given) -> dict[str, _Range]:
    cpus, threads = _Range(given.cpus or 0, given.cpus or 0), case.kind.threads_per_core
    if given.cpus is None:
        cpus = _Range(case.shape.cores_per_node * threads, case.kind.cores_for_jobs * threads)
    memory = given.memory_mib or case.shape.memory_mib or 0
    return {"cpu": cpus, "mem": _Range(memory, memory), **_gpus(case, given.gpus or ())}


def _gpus(case: Case, gpus: Sequence[tuple[str, int]]) -> dict[str, _Range]:
    """Return the number of GPUs of all types, and of each type that Slurm counts separately."""
    counts = {"gres/gpu": sum(count for _, count in gpus)}
    for gpu_type in case.cluster.counted_gpus:
        same = (count for name, count in gpus if name.lower() == gpu_type.lower())
        counts[f"gres/gpu:{gpu_type}"] = sum(same)
    return {what: _Range(count, count) for what, count in counts.items()}


def _amount(what: str, number: int) -> str:
    if what == "mem":
        return f"{format_mib(number)} of memory"
    name = {"cpu": "CPU", "node": "node", "gres/gpu": "GPU"}.get(what)
    if name is not None:
        return counted(number, name)
    if what.startswith("gres/gpu:"):
        return counted(number, f"{what.removeprefix('gres/gpu:')} GPU")
    return f"{what}={number}"
