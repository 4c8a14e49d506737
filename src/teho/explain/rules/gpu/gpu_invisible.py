"""The job has more GPUs than the program can see."""

from __future__ import annotations

from teho.explain import advice
from teho.explain.places import gpus_of, name_all, per_place
from teho.explain.rule import (
    Certainty,
    Evidence,
    Findings,
    Located,
    RuleContext,
    Severity,
    Threshold,
)
from teho.model.missing import Missing, Reason
from teho.model.summary import NodeSummary

RANK = 30
SEVERITY = "critical"
CERTAINTY = Certainty.SURE
THRESHOLDS = {
    "hidden_min": Threshold(
        1.0,
        "GPUs",
        "one hidden GPU is enough for this finding: the program cannot use a GPU that it cannot "
        "see",
    ),
}

_VARIABLES = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


def judge(context: RuleContext) -> Findings:
    """Compare the GPUs that the scheduler gave with the GPUs that the program sees.

    If a node has several tasks, the recorder sees the GPUs of one task. If the other tasks may see
    the other GPUs, the rule does not judge.
    """
    alike: dict[tuple[int, int], list[NodeSummary]] = {}
    tasks = {node.name: max(1, len(node.ranks)) for node in context.run.nodes}
    for node in context.summary.nodes:
        allocation = context.run.allocation(node.name)
        given, seen = allocation.gpus_held, len(node.gpus)
        if allocation.scheduler is None:
            continue
        if given is None:
            if seen:
                context.figure(node, "number of allocated GPUs", Missing(Reason.UNRECORDED))
        elif seen < given <= seen * tasks[node.name]:
            context.figure(node, "GPUs that the other tasks see", Missing(Reason.UNRECORDED))
        elif given - seen >= context.limit("hidden_min"):
            alike.setdefault((given, seen), []).append(node)
    for (given, seen), nodes in alike.items():
        yield _finding(context, given, seen, nodes)


def _finding(context: RuleContext, given: int, seen: int, nodes: list[NodeSummary]) -> Located:
    environment = context.run.environment
    variables = {name: environment[name] for name in _VARIABLES if name in environment}
    fewer = "do not request the GPU"
    if seen:
        fewer = advice.use_gpus(context.scheduler, gpus_of(nodes[0]), 1)
    return context.finding(
        Severity.CRITICAL,
        f"The job has {given} GPU{'s' if given > 1 else ''} on {name_all(nodes)}"
        f"{' each' if len(nodes) > 1 else ''}, but the program can see "
        f"{f'only {seen}' if seen else 'none'}.",
        evidence=(
            *per_place("GPUs of the job", "", [(node, float(given)) for node in nodes]),
            *per_place("GPUs that the program sees", "", [(node, float(seen)) for node in nodes]),
            *(Evidence(name, value or "set, but empty") for name, value in variables.items()),
        ),
        action=f"{_reveal(context, list(variables))}. Or {fewer}.",
        subjects=nodes,
    )


def _reveal(context: RuleContext, variables: list[str]) -> str:
    if variables:
        several = "s" if len(variables) > 1 else ""
        return (
            f"Before you start the program, delete the variable{several} that may hide GPUs: "
            f"`unset {' '.join(variables)}`"
        )
    return (
        context.scheduler_advice.show_gpus
        or "Find what hides the GPUs: `env | grep VISIBLE_DEVICES`"
    )
