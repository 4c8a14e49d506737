"""Requests near a cluster's limits, from a seed, and what a plan and a script make of them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import msgspec

from teho.model.cluster import Cluster, NodeKind, Partition
from teho.model.plan import Option, Refusal, Unfit
from teho.model.request import Request
from teho.planner.answer import answer, kinds_for, option_of
from teho.planner.limits import refusals_of
from teho.planner.place import Case, Place, memory_mib, seconds
from teho.planner.shape import lay_out
from teho.schedulers.script.write import ScriptOptions, write_script

__all__ = ["Judged", "judged_by_plan", "requests_for"]

_LAUNCHERS: tuple[str, ...] = (
    "plain", "torchrun", "srun", "accelerate", "deepspeed", "horovod",
)  # fmt: skip


class Judged(msgspec.Struct):
    """A script, and what the plan says of it: no refusals if it would have written it."""

    request: Request
    script: str
    accepted: bool
    refusals: tuple[Refusal, ...] = ()


def requests_for(cluster: Cluster, seed: int) -> Iterator[Request]:
    """Yield requests without end: each well inside the limits but for up to two of its numbers."""
    draw = random.Random(f"{cluster.name} {seed}")
    while True:
        partition = draw.choice(cluster.partitions)
        kinds = [kind for kind in cluster.nodes if kind.name in partition.kinds]
        kind = draw.choice(kinds)
        yield _request(draw, cluster, partition, kind)


def _request(
    draw: random.Random, cluster: Cluster, partition: Partition, kind: NodeKind
) -> Request:
    numbers = _inside(draw, cluster, partition, kind)
    edges = _edges(cluster, partition, kind, numbers)
    if draw.random() < 0.4:
        numbers.update(draw.choice(_sizes_at_the_edge(partition, kind)))
    else:
        for name in draw.sample(sorted(edges), draw.choice([0, 1, 1, 2])):
            numbers[name] = draw.choice(edges[name])
    accounts = [cluster.account.example or None]
    accounts += [f"{prefix}someuser" for prefix in cluster.account.allocations]
    return Request(
        command=("true",),
        launcher=draw.choice(_LAUNCHERS),
        account=draw.choice(accounts),
        **numbers,
    )


def _inside(
    draw: random.Random, cluster: Cluster, partition: Partition, kind: NodeKind
) -> dict[str, object]:
    """Return a request that ought to fit, as far as the file says what fits."""
    gpu = kind.gpu
    most = _most_per_node(partition, kind)
    numbers: dict[str, object] = {"gpus": 0}
    if gpu:
        few = [n for n in range(1, most + 1) if n >= (partition.min_gpus_per_node or 1)]
        numbers["gpus"] = draw.choice([*few, partition.min_gpus or 1, most, 2 * most])
        if gpu.part_of or draw.random() < 0.5:
            numbers["gpu_type"] = gpu.type
        if gpu.part_of:
            numbers["gpus"] = 1
    elif draw.random() < 0.7:
        numbers["cpus"] = draw.randint(1, min(kind.cores, partition.max_cores or kind.cores))
    if not gpu and partition.min_nodes > 1:
        numbers["nodes"] = partition.min_nodes
    if partition.name and draw.random() < 0.8:
        numbers["partition"] = partition.name
    if partition.max_time:
        longest_s = seconds(partition.max_time)
        shortest_s = seconds(partition.min_time) if partition.min_time else 60.0
        numbers["time_s"] = draw.choice(
            [None, float(draw.randint(int(shortest_s), int(longest_s)))]
        )
    return numbers


def _sizes_at_the_edge(partition: Partition, kind: NodeKind) -> list[dict[str, object]]:
    """Return numbers that go together: each at one limit, and else as modest as can be."""
    most = _most_per_node(partition, kind)
    nodes = _around(
        partition.max_nodes, partition.max_nodes_with_allocation, partition.min_nodes, kind.count
    )
    if not kind.gpu:
        alone = [{"nodes": count} for count in nodes]
        together = _around(partition.max_cores) or [1]
        return alone + [{"cpus": cores, "nodes": 1} for cores in together]
    found: list[dict[str, object]] = [
        {"gpus": count * each, "nodes": count} for count in nodes for each in {1, most}
    ]
    for gpus in _around(partition.max_gpus, partition.min_gpus):
        spread = [count for count in range(1, gpus + 1) if gpus % count == 0]
        found += [{"gpus": gpus, "nodes": n} for n in spread if gpus // n <= most]
    # One core a GPU, so that it is the GPUs that are too many.
    return found + [{"gpus": each, "nodes": 1, "cpus_per_gpu": 1} for each in _around(most)]


def _edges(
    cluster: Cluster, partition: Partition, kind: NodeKind, numbers: dict[str, object]
) -> dict[str, list[object]]:
    """Return, for each number of a request, values at the limits and just beyond them."""
    usable = kind.usable_cores or kind.cores
    nodes = _around(partition.max_nodes, partition.max_nodes_with_allocation, kind.count)
    nodes += _around(partition.min_nodes)
    edges: dict[str, list[object]] = {"nodes": [1, 2, *nodes]}
    if kind.gpu:
        most = _most_per_node(partition, kind)
        share = next((one for one in cluster.shares if one.gpu == kind.gpu.type), None)
        fair = usable // most
        gpus = [count * most for count in nodes]
        gpus += _around(most, partition.max_gpus, partition.min_gpus, partition.gpu_multiple)
        edges["gpus"] = [count for count in gpus if count]
        edges["cpus_per_gpu"] = [1, *_around(fair, share.cores if share else None)]
        edges["gpu_type"] = [other.gpu.type for other in cluster.nodes if other.gpu]
        edges["gpu_type"] += [None, "k80"]
        edges["gpu_memory_gib"] = [1.0, kind.gpu.memory_gib, (kind.gpu.memory_gib or 1.0) + 1]
        per_gpu = memory_mib(share.memory) if share else None
        memory = [per_gpu, per_gpu * most if per_gpu else None]
        edges["memory_mib"] = _mib(
            *memory, memory_mib(kind.memory), memory_mib(partition.max_memory)
        )
    else:
        cores = _around(usable, partition.max_cores, partition.max_cores_per_node)
        many = numbers.get("nodes")
        edges["cpus"] = cores + [count * (many if isinstance(many, int) else 2) for count in cores]
        edges["memory_mib"] = _mib(memory_mib(kind.memory), memory_mib(partition.max_memory))
        edges["gpus"] = [0, 1]
    disk = cluster.local_disk
    edges["local_disk_gib"] = _sizes(
        kind.local_disk_gib, partition.max_local_disk_gib, disk.max_gib if disk else None,
        disk.min_gib if disk else None,
    )  # fmt: skip
    edges["time_s"] = [3600.0]
    for limit in (partition.max_time, partition.min_time):
        edges["time_s"] += [seconds(limit) + more for more in (-60.0, 0.0, 60.0)] if limit else []
    others = [other.name for other in cluster.partitions if other.name]
    edges["partition"] = [*others, None, "nowhere"]
    return edges


def _most_per_node(partition: Partition, kind: NodeKind) -> int:
    counts = (partition.max_gpus_per_node, kind.gpu.count if kind.gpu else None)
    return min((count for count in counts if count), default=1)


def _around(*limits: int | None) -> list[int]:
    return [limit + more for limit in limits if limit for more in (-1, 0, 1) if limit + more > 0]


def _sizes(*limits: float | None) -> list[object]:
    found: list[object] = [1.0, None]
    for limit in limits:
        found += [limit * 0.9, float(limit), limit + 1.0, limit * 1.5] if limit else []
    return found


def _mib(*limits: int | None) -> list[object]:
    found: list[object] = [1024, None]
    for limit in limits:
        found += [limit * 9 // 10, limit, limit + 1, limit + 1024, limit * 3 // 2] if limit else []
    return found


_NO_MODULE = ScriptOptions(framework="none")
"""The twins have no modules, and few clusters have a module with Horovod."""


def judged_by_plan(request: Request, cluster: Cluster) -> list[Judged]:
    """Return a script for each way in which the request could be meant, and the plan's verdict.

    What the plan refuses is written nonetheless, on every kind of node of every partition
    that the request may mean; what one kind refuses and another takes in the same words, it takes.
    """
    found: dict[str, Judged] = {}
    answered = answer(request, [cluster])
    for option in answered.options:
        text = write_script(option, cluster, _NO_MODULE).text
        found[text] = Judged(request, text, accepted=True)
    for option, refusals in _refused(request, cluster, answered.unfit):
        text = write_script(option, cluster, _NO_MODULE).text
        held = found.setdefault(text, Judged(request, text, accepted=False))
        if not held.accepted:
            held.refusals += refusals
    return list(found.values())


def _refused(
    request: Request, cluster: Cluster, unfit: Sequence[Unfit]
) -> Iterator[tuple[Option, tuple[Refusal, ...]]]:
    names = {partition.name for partition in cluster.partitions}
    misnamed = request.partition is not None and (
        request.partition not in names or cluster.dialect.partition == "never"
    )
    suits = [(one, list(kinds_for(request, cluster, one))) for one in cluster.partitions]
    for partition, suiting in suits:
        if not misnamed and request.partition not in {None, partition.name}:
            continue
        if not suiting and not partition.name and any(kinds for _, kinds in suits):
            continue  # nothing in the script would send it there
        # What refuses every kind at once is said in the answer alone.
        label = request.partition if misnamed else partition.title
        whole = [refusal for one in unfit if one.label == label for refusal in one.refusals]
        for kind in suiting or [one for one in cluster.nodes if one.name in partition.kinds]:
            case = lay_out(Place(request=request, cluster=cluster, partition=partition, kind=kind))
            refusals = tuple(whole) if misnamed or not suiting else refusals_of(case)
            if refusals:
                yield _written(case, request, misnamed=misnamed), refusals
        if misnamed:
            return


def _written(case: Case, request: Request, *, misnamed: bool) -> Option:
    option = option_of(case)
    if request.gpus and request.gpu_type:
        option = msgspec.structs.replace(option, gpu_type=request.gpu_type)
    if request.gpus and not option.gpu_type:
        option = msgspec.structs.replace(option, gpu_type="any")
    if misnamed:
        option = msgspec.structs.replace(option, partition=request.partition or "")
    return option
