"""Limits of QOS and associations on what a job is given, by trackable resource (TRES)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from teho.model.plan import Given, Refusal
from teho.planner.allocated import cpus_per_core, given_by_kind
from teho.planner.shape import Case
from teho.planner.slurm_rules import Limit
from teho.units import counted, format_mib

__all__ = ["LIMITS_SOURCE", "resource_refusals", "unsure_limits"]

LIMITS_SOURCE = "Slurm sacctmgr show qos, show associations"


class _Range(NamedTuple):
    """What a job is given of a resource, by the kind of node that it comes to."""

    least: int
    most: int


class _Held(NamedTuple):
    """A limit, and what is compared with it."""

    what: str
    limit: Limit
    given: _Range | None
    """None: a plan does not know it."""
    where: str
    """Such as `per node`; empty if it is the least that a job must have."""

    @property
    def is_broken(self) -> bool:
        """Whether the job breaks it on any kind of node."""
        if self.given is None:
            return False
        most = self.limit.most
        return self.given.least > most if self.where else self.given.most < most

    @property
    def is_unsure(self) -> bool:
        """Whether the job may break it."""
        if self.given is None:
            return True
        most = self.limit.most
        return self.given.most > most if self.where else self.given.least < most


def resource_refusals(case: Case) -> Iterator[Refusal]:
    """Yield the limits that the job as it is given breaks."""
    for held in _held(case):
        if held.is_broken and held.given is not None:
            what, most = held.what, _amount(held.what, held.limit.most)
            if held.where:
                sentence = (
                    f"{_amount(what, held.given.least)}, more than the limit of {most} {held.where}"
                )
            else:
                sentence = f"{_amount(what, held.given.most)}, less than the minimum of {most}"
            yield Refusal(
                kind="limit",
                sentence=f"the job has {sentence} ({held.limit.setter})",
                source=LIMITS_SOURCE,
            )


def unsure_limits(case: Case) -> Iterator[str]:
    """Yield in a few words what may refuse the job, or let it wait, and is not known."""
    for held in _held(case):
        if held.is_unsure and not held.is_broken:
            amount = _amount(held.what, held.limit.most)
            what = "stays within the limit of" if held.where else "reaches the minimum of"
            bound = f"{what} {amount} {held.where}".rstrip()
            yield f"whether the job {bound} ({held.limit.setter}): {_why_unsure(held)}"
    most, threads = case.partition.max_cpus_per_node, case.kind.threads_per_core
    if most is not None and most % threads and case.shape.gpus_per_node:
        # Slurm 22.05 refuses GPUs with some even numbers of CPUs there, and takes them with others.
        yield (
            f"whether Slurm accepts a job with GPUs: the limit of {most} CPUs per node is not a "
            f"whole number of cores, which have {threads} CPUs each"
        )


def _held(case: Case) -> Iterator[_Held]:
    limits, nodes = case.limits, case.shape.nodes
    if not (limits.job or limits.node or limits.least):
        return
    of_node = _given(case)
    of_job = {what: _Range(nodes * one.least, nodes * one.most) for what, one in of_node.items()}
    of_job["node"] = _Range(nodes, nodes)
    for given, most, where in (
        (of_job, limits.job, "per job"),
        (of_node, limits.node, "per node"),
        (of_job | _asked_of_whole_nodes(case), limits.least, ""),
    ):
        for what, limit in most.items():
            yield _Held(what, limit, given.get(what), where)


def _why_unsure(held: _Held) -> str:
    if held.given is None:
        return f"Teho does not know how much {held.what} it is given"
    return "what it is given depends on the node"


def _given(case: Case) -> dict[str, _Range]:
    """Return what Slurm counts for each node, by trackable resource."""
    found: dict[str, _Range] = {}
    for given in given_by_kind(case):
        for what, own in _counted(case, given):
            before = found.get(what, own)
            found[what] = _Range(min(before.least, own.least), max(before.most, own.most))
    return found


def _asked_of_whole_nodes(case: Case) -> dict[str, _Range]:
    """Return what the job asks for where it is given more: whole nodes.

    Slurm 22.05 compares a minimum with it when the job is submitted.
    """
    if not case.has_whole_nodes:
        return {}
    shape, kind = case.shape, case.kind
    gpus, cpus = shape.nodes * shape.gpus_per_node, cpus_per_core(case).cpus * shape.cores_per_node
    found = {"cpu": shape.nodes * cpus, "gres/gpu": gpus}
    for gpu_type in case.cluster.counted_gpus:
        is_asked = kind.gpu is not None and kind.gpu.type.lower() == gpu_type.lower()
        found[f"gres/gpu:{gpu_type}"] = gpus if is_asked else 0
    return {what: _Range(count, count) for what, count in found.items()}


def _counted(case: Case, given: Given) -> Iterator[tuple[str, _Range]]:
    kind, gpus = case.kind, given.gpus or ()
    if given.cpus is None:
        asked, all_cores = case.shape.cores_per_node, kind.cores_for_jobs
        yield "cpu", _Range(asked * kind.threads_per_core, all_cores * kind.threads_per_core)
    else:
        yield "cpu", _Range(given.cpus, given.cpus)
    memory = given.memory_mib or case.shape.memory_mib or 0
    yield "mem", _Range(memory, memory)
    count = sum(number for _, number in gpus)
    yield "gres/gpu", _Range(count, count)
    for gpu_type in case.cluster.counted_gpus:
        count = sum(number for name, number in gpus if name.lower() == gpu_type.lower())
        yield f"gres/gpu:{gpu_type}", _Range(count, count)


def _amount(what: str, number: int) -> str:
    if what == "mem":
        return f"{format_mib(number)} of memory"
    name = {"cpu": "CPU", "node": "node", "gres/gpu": "GPU"}.get(what)
    if name is not None:
        return counted(number, name)
    if what.startswith("gres/gpu:"):
        return counted(number, f"{what.removeprefix('gres/gpu:')} GPU")
    return f"{what}={number}"
