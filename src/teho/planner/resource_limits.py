"""Limits of QOS and associations on what a job is given, by trackable resource (TRES)."""

from __future__ import annotations

from collections.abc import Iterator

from teho.model.plan import Refusal
from teho.planner.allocated import given_to
from teho.planner.shape import Case
from teho.units import counted, format_mib

__all__ = ["LIMITS_SOURCE", "resource_refusals"]

LIMITS_SOURCE = "Slurm sacctmgr show qos, show associations"


def resource_refusals(case: Case) -> Iterator[Refusal]:
    """Yield the limits of QOS and associations that the job as it is given breaks."""
    limits, nodes = case.limits, case.shape.nodes
    if not (limits.job or limits.node or limits.least):
        return
    of_node = _resources_of_node(case)
    of_job = {what: number * nodes for what, number in of_node.items()} | {"node": nodes}
    for asked, most, where in (
        (of_job, limits.job, "a job"),
        (of_node, limits.node, "a node"),
    ):
        for what, limit in most.items():
            if asked.get(what, 0) > limit.most:
                yield Refusal(
                    kind="limit",
                    sentence=f"{_amount(what, asked[what])}, at most "
                    f"{_amount(what, limit.most)} {where} ({limit.setter})",
                    source=LIMITS_SOURCE,
                )
    for what, limit in limits.least.items():
        if what in of_job and of_job[what] < limit.most:
            yield Refusal(
                kind="limit",
                sentence=f"{_amount(what, of_job[what])}, {_amount(what, limit.most)} or more "
                f"({limit.setter})",
                source=LIMITS_SOURCE,
            )


def _resources_of_node(case: Case) -> dict[str, int]:
    """Return what Slurm counts for each node, by trackable resource."""
    given, shape = given_to(case), case.shape
    cpus = given.cpus
    gpus = given.gpus or ()
    found = {
        "cpu": shape.cores_per_node * case.kind.threads_per_core if cpus is None else cpus,
        "mem": given.memory_mib or shape.memory_mib or 0,
        "gres/gpu": sum(count for _, count in gpus),
    }
    for gpu_type in case.cluster.counted_gpus:
        found[f"gres/gpu:{gpu_type}"] = sum(
            n for name, n in gpus if name.lower() == gpu_type.lower()
        )
    return found


def _amount(what: str, number: int) -> str:
    if what == "mem":
        return format_mib(number)
    name = {"cpu": "CPU", "node": "node", "gres/gpu": "GPU"}.get(what)
    if name is None:
        name = what.removeprefix("gres/gpu:") + " GPU" * what.startswith("gres/gpu:")
    return counted(number, name)
