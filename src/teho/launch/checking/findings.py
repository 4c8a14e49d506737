"""What is wrong with a step, from what its ranks said; no rank is asked here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from teho.launch.checking.task import CheckTask, name_ranks, spans

__all__ = [
    "Problem",
    "choose_backend",
    "claimed_twice",
    "contradictions",
    "expected_nodes",
    "name_group",
    "rendezvous_findings",
]


class Problem(NamedTuple):
    """One thing that is wrong, and what to do about it."""

    kind: str
    """Stable; for programs."""
    sentence: str
    next_step: str


def rendezvous_findings(
    task: CheckTask, hellos: Sequence[Mapping[str, Any]], waited_s: float
) -> list[Problem]:
    """Return why the ranks did not all meet: those who contradict each other, those who lack.

    Args:
        task: rank 0.
        hellos: what each who came said of itself, in the order of coming.
        waited_s: how long the others were waited for.
    """
    findings = _sizes(hellos)
    came: dict[int, Mapping[str, Any]] = {}
    for hello in hellos:
        earlier = came.setdefault(hello["rank"], hello)
        if earlier is not hello:
            findings.append(claimed_twice(earlier, hello))
    missing = [rank for rank in range(task.world_size) if rank not in came]
    if len(hellos) >= task.world_size:
        # As many as there should be are here: nobody else is on the way.
        advice = "start as many tasks as WORLD_SIZE says, each with a RANK of its own"
        if missing:
            findings.append(Problem("rank-missing", f"no task has RANK {spans(missing)}", advice))
        return findings
    nodes = expected_nodes(task, list(came.values()))
    by_node: dict[str, list[int]] = defaultdict(list)
    for rank in missing:
        by_node[nodes.get(rank, "")].append(rank)
    for node, ranks in by_node.items():
        who = name_ranks(ranks) + (f" on {node}" if node else "")
        findings.append(
            Problem(
                "rank-missing",
                f"{who} did not reach {task.place} within {waited_s:.0f} s",
                f"see what {'it says' if len(ranks) == 1 else 'they say'} on standard error, and "
                "whether as many tasks were started",
            )
        )
    return findings


def contradictions(hellos: Sequence[Mapping[str, Any]]) -> list[Problem]:
    """Return where ranks that did meet disagree about the nodes that they run on."""
    findings = []
    for node_rank, group in sorted(_by(hellos, "node_rank").items()):
        node = group[0]["node"]
        hosts = sorted({hello["host"] for hello in group})
        if len(hosts) > 1:
            findings.append(
                Problem(
                    "node-rank-twice",
                    f"NODE_RANK {node_rank} stands for {len(hosts)} machines: {', '.join(hosts)}",
                    "give each node a NODE_RANK of its own",
                )
            )
            continue
        for local_rank, ranks in sorted(_by(group, "local_rank").items()):
            if len(ranks) > 1:
                who = name_ranks(hello["rank"] for hello in ranks)
                findings.append(
                    Problem(
                        "local-rank-twice",
                        f"{who} on {node} all have LOCAL_RANK {local_rank}",
                        "give each task of a node a LOCAL_RANK of its own: it chooses the GPU",
                    )
                )
        sizes = {hello["local_world_size"] for hello in group}
        if sizes != {len(group)}:
            findings.append(
                Problem(
                    "local-size-wrong",
                    f"{len(group)} ranks run on {node}, where LOCAL_WORLD_SIZE is {spans(sizes)}",
                    "set LOCAL_WORLD_SIZE to the number of tasks on the node",
                )
            )
    return findings


def claimed_twice(first: Mapping[str, Any], second: Mapping[str, Any]) -> Problem:
    """Return that two tasks say that they are the same rank."""
    tasks = " and ".join(f"process {hello['pid']} on {hello['node']}" for hello in (first, second))
    return Problem(
        "rank-twice",
        f"two tasks claim rank {first['rank']}: {tasks}",
        "give each task a RANK of its own; a variable that the batch script expanded is the "
        "same in all tasks",
    )


def expected_nodes(task: CheckTask, came: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Return on which node each rank belongs, where those who came allow to tell.

    Schedulers deal ranks to nodes in blocks or in turn; the way that fits all who came is taken.
    """
    counts = {hello["node_rank"]: hello["local_world_size"] for hello in came}
    names = {hello["node_rank"]: hello["node"] for hello in came}
    names.update(enumerate(task.hosts))
    if not counts:
        return {}
    usual = max(counts.values())
    nodes = range(max(names) + 1)
    blocks = [node for node in nodes for _ in range(counts.get(node, usual))]
    turns = [node for turn in range(usual) for node in nodes if turn < counts.get(node, usual)]
    for order in (blocks, turns):
        if len(order) == task.world_size and all(
            hello["rank"] < len(order) and order[hello["rank"]] == hello["node_rank"]
            for hello in came
        ):
            return {rank: names.get(node, f"node {node}") for rank, node in enumerate(order)}
    return {}


def name_group(ranks: Iterable[int], hellos: Mapping[int, Mapping[str, Any]]) -> str:
    """Write ranks with their nodes: `ranks 4–7 on r01g02 and rank 9 on r01g03`."""
    by_node: dict[str, list[int]] = defaultdict(list)
    for rank in sorted(ranks):
        by_node[hellos[rank]["node"]].append(rank)
    return " and ".join(f"{name_ranks(some)} on {node}" for node, some in by_node.items())


def choose_backend(
    told: Mapping[int, Mapping[str, Any]], hellos: Mapping[int, Mapping[str, Any]]
) -> tuple[str, list[Problem], str]:
    """Return what torch is to use: the backend's name, what is wrong, and why there is none.

    Args:
        told: what each rank found out about its torch.
        hellos: what each rank said of itself.
    """
    without = [rank for rank, answer in told.items() if not answer["version"]]
    if len(without) == len(told):
        return "", [], f"torch is not there ({told[0]['why']})"
    if without:
        finding = Problem(
            "torch-missing",
            f"torch cannot be imported by {name_group(without, hellos)}: {told[without[0]]['why']}",
            "start all ranks with the same Python, in the same container",
        )
        return "", [finding], "torch is not on all ranks"
    findings = [*_versions(told, hellos), *_gpus(told, hellos)]
    if not findings and all(answer["nccl"] and answer["gpu"] for answer in told.values()):
        return "nccl", [], ""
    if all(answer["gloo"] for answer in told.values()):
        return "gloo", findings, ""
    return "", findings, "this torch was built without gloo"


def _versions(
    told: Mapping[int, Mapping[str, Any]], hellos: Mapping[int, Mapping[str, Any]]
) -> list[Problem]:
    by_version: dict[str, list[int]] = defaultdict(list)
    for rank, answer in told.items():
        by_version[answer["version"]].append(rank)
    if len(by_version) == 1:
        return []
    parts = [f"{version} on {name_group(some, hellos)}" for version, some in by_version.items()]
    return [
        Problem(
            "torch-differs",
            f"the ranks have different versions of torch: {', '.join(parts)}",
            "start all ranks with the same Python, in the same container",
        )
    ]


def _gpus(
    told: Mapping[int, Mapping[str, Any]], hellos: Mapping[int, Mapping[str, Any]]
) -> list[Problem]:
    findings = []
    blind = [rank for rank, answer in told.items() if not answer["gpu"]]
    if blind and len(blind) < len(told):
        findings.append(
            Problem(
                "gpu-missing",
                f"{name_group(blind, hellos)} {'sees' if len(blind) == 1 else 'see'} no GPU, "
                "others do",
                "see nvidia-smi or rocm-smi there, and which *_VISIBLE_DEVICES is set",
            )
        )
    owners: dict[tuple[int, str], list[int]] = defaultdict(list)
    for rank, answer in told.items():
        if answer["gpu"]:
            owners[hellos[rank]["node_rank"], answer["gpu"]].append(rank)
    for (_, gpu), ranks in owners.items():
        if len(ranks) > 1:
            findings.append(
                Problem(
                    "gpu-shared",
                    f"{name_group(ranks, hellos)} use one GPU ({gpu})",
                    "ask for as many GPUs a node as it has tasks, and let each task see all",
                )
            )
    return findings


def _sizes(hellos: Sequence[Mapping[str, Any]]) -> list[Problem]:
    by_size = _by(hellos, "world_size")
    if len(by_size) < 2:
        return []
    parts = []
    for size, group in sorted(by_size.items()):
        nodes = sorted({hello["node"] for hello in group})
        who = name_ranks(sorted({hello["rank"] for hello in group}))
        parts.append(f"{size} on {who} ({', '.join(nodes)})")
    return [
        Problem(
            "world-size-differs",
            f"the ranks disagree about WORLD_SIZE: {', '.join(parts)}",
            "start all tasks in one srun or mpirun, and set WORLD_SIZE nowhere else",
        )
    ]


def _by(hellos: Iterable[Mapping[str, Any]], key: str) -> dict[int, list[Mapping[str, Any]]]:
    groups: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for hello in hellos:
        groups[hello[key]].append(hello)
    return groups
