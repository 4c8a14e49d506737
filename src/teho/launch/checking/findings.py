"""Find problems of a step in the messages of its ranks. This module sends no messages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from teho.launch.checking.task import CheckTask, name_ranks, spans

__all__ = [
    "Problem",
    "choose_backend",
    "claimed_twice",
    "contradictions",
    "expected_nodes",
    "group_by",
    "name_group",
    "rendezvous_findings",
]

K = TypeVar("K")
T = TypeVar("T")
if TYPE_CHECKING:
    Message = Mapping[str, Any]
_SAME_PYTHON = "start all ranks with the same Python, in the same container"


class Problem(NamedTuple):
    """One problem and the next step."""

    kind: str
    """Stable name, for programs."""
    sentence: str
    next_step: str


def rendezvous_findings(
    task: CheckTask, hellos: Sequence[Message], waited_s: float
) -> list[Problem]:
    """Return why the ranks did not all meet: contradictions, duplicates and missing ranks.

    Args:
        task: rank 0.
        hellos: first messages of the ranks, in the order of arrival.
        waited_s: how long rank 0 waited for them.
    """
    findings = list(_sizes(hellos))
    came: dict[int, Message] = {}
    for hello in hellos:
        earlier = came.setdefault(hello["rank"], hello)
        if earlier is not hello:
            findings.append(claimed_twice(earlier, hello))
    missing = [rank for rank in range(task.world_size) if rank not in came]
    if len(hellos) >= task.world_size:
        # All tasks have arrived, so no other task will have the missing rank.
        advice = "start WORLD_SIZE tasks, and give each task its own RANK"
        if missing:
            findings.append(Problem("rank-missing", f"no task has RANK {spans(missing)}", advice))
        return findings
    nodes = expected_nodes(task, list(came.values()))
    for node, ranks in group_by(missing, lambda rank: nodes.get(rank, "")).items():
        who = name_ranks(ranks) + (f" on {node}" if node else "")
        sentence = f"{who} did not reach {task.place} within {waited_s:.0f} s"
        these = "this rank" if len(ranks) == 1 else "these ranks"
        advice = f"read the messages of {these} on standard error, and check that all tasks started"
        findings.append(Problem("rank-missing", sentence, advice))
    return findings


def contradictions(hellos: Sequence[Message]) -> Iterator[Problem]:
    """Yield contradictions between the ranks about the nodes on which they run."""
    for node_rank, group in sorted(group_by(hellos, lambda one: one["node_rank"]).items()):
        node = group[0]["node"]
        hosts = sorted({hello["host"] for hello in group})
        if len(hosts) > 1:
            yield Problem(
                "node-rank-twice",
                f"NODE_RANK {node_rank} is used on {len(hosts)} machines: {', '.join(hosts)}",
                "give each node its own NODE_RANK",
            )
            continue
        for local_rank, ranks in sorted(group_by(group, lambda one: one["local_rank"]).items()):
            if len(ranks) > 1:
                who = name_ranks(hello["rank"] for hello in ranks)
                yield Problem(
                    "local-rank-twice",
                    f"{who} on {node} all have LOCAL_RANK {local_rank}",
                    "give each task of a node its own LOCAL_RANK: LOCAL_RANK selects the GPU",
                )
        sizes = {hello["local_world_size"] for hello in group}
        if sizes != {len(group)}:
            yield Problem(
                "local-size-wrong",
                f"{len(group)} ranks run on {node}, but LOCAL_WORLD_SIZE is {spans(sizes)}",
                "set LOCAL_WORLD_SIZE to the number of tasks on the node",
            )


def claimed_twice(first: Message, second: Message) -> Problem:
    """Return that two tasks have the same rank."""
    tasks = " and ".join(f"process {hello['pid']} on {hello['node']}" for hello in (first, second))
    return Problem(
        "rank-twice",
        f"two tasks claim rank {first['rank']}: {tasks}",
        "give each task its own RANK; if the batch script expands a variable such as SLURM_PROCID, "
        "all tasks get the same value",
    )


def expected_nodes(task: CheckTask, came: Sequence[Message]) -> dict[int, str]:
    """Return the node of each rank, if it follows from the ranks that arrived.

    Schedulers distribute ranks over nodes in blocks or in turn. The way that fits all arrived
    ranks is used.
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


def name_group(ranks: Iterable[int], hellos: Mapping[int, Message]) -> str:
    """Write ranks with their nodes: `ranks 4–7 on r01g02 and rank 9 on r01g03`."""
    by_node = group_by(sorted(ranks), lambda rank: hellos[rank]["node"])
    return " and ".join(f"{name_ranks(some)} on {node}" for node, some in by_node.items())


def choose_backend(
    answers: Mapping[int, Message], hellos: Mapping[int, Message]
) -> tuple[str, list[Problem], str]:
    """Return `(backend for torch, problems, why there is no backend)`.

    Args:
        answers: by rank, the facts about its torch.
        hellos: by rank, its first message.
    """
    without = [rank for rank, answer in answers.items() if not answer["version"]]
    if len(without) == len(answers):
        return "", [], f"torch cannot be imported ({answers[0]['why']})"
    if without:
        why = answers[without[0]]["why"]
        sentence = f"torch cannot be imported by {name_group(without, hellos)}: {why}"
        finding = Problem("torch-missing", sentence, _SAME_PYTHON)
        return "", [finding], "some ranks cannot import torch"
    findings = [*_versions(answers, hellos), *_gpus(answers, hellos)]
    if not findings and all(answer["nccl"] and answer["gpu"] for answer in answers.values()):
        return "nccl", [], ""
    if all(answer["gloo"] for answer in answers.values()):
        return "gloo", findings, ""
    return "", findings, "this torch was built without gloo"


def _versions(answers: Mapping[int, Message], hellos: Mapping[int, Message]) -> Iterator[Problem]:
    by_version = group_by(answers, lambda rank: answers[rank]["version"])
    if len(by_version) > 1:
        parts = [f"{version} on {name_group(some, hellos)}" for version, some in by_version.items()]
        sentence = f"the ranks have different versions of torch: {', '.join(parts)}"
        yield Problem("torch-differs", sentence, _SAME_PYTHON)


def _gpus(answers: Mapping[int, Message], hellos: Mapping[int, Message]) -> Iterator[Problem]:
    seeing = [rank for rank, answer in answers.items() if answer["gpu"]]
    blind = [rank for rank in answers if rank not in seeing]
    if blind and seeing:
        see = "sees" if len(blind) == 1 else "see"
        yield Problem(
            "gpu-missing",
            f"{name_group(blind, hellos)} {see} no GPU, but other ranks see a GPU",
            "on the node of each rank that sees no GPU, run nvidia-smi or rocm-smi, and check "
            "which *_VISIBLE_DEVICES is set",
        )
    owners = group_by(seeing, lambda rank: (hellos[rank]["node_rank"], answers[rank]["gpu"]))
    for (_, gpu), ranks in owners.items():
        if len(ranks) > 1:
            yield Problem(
                "gpu-shared",
                f"{name_group(ranks, hellos)} share one GPU ({gpu})",
                "request one GPU per task, but let each task see all GPUs of its node",
            )


def _sizes(hellos: Sequence[Message]) -> Iterator[Problem]:
    by_size = group_by(hellos, lambda hello: hello["world_size"])
    if len(by_size) < 2:
        return
    parts = []
    for size, group in sorted(by_size.items()):
        nodes = sorted({hello["node"] for hello in group})
        who = name_ranks(sorted({hello["rank"] for hello in group}))
        parts.append(f"{size} on {who} ({', '.join(nodes)})")
    yield Problem(
        "world-size-differs",
        f"the ranks disagree about WORLD_SIZE: {', '.join(parts)}",
        "start all tasks with one srun or mpirun, and do not set WORLD_SIZE yourself",
    )


def group_by(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return the items by their key, in their order."""
    groups: dict[K, list[T]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups
