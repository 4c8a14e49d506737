"""The job holds GPUs that the program cannot see."""

from __future__ import annotations

from teho.explain import advice
from teho.explain.context import NodeGpu, RuleContext, allocation_of, name_all, per_place
from teho.model.finding import Abstention, Evidence, Finding, Severity, Threshold
from teho.model.missing import Missing, Reason
from teho.model.summary import NodeSummary

__all__ = ["KIND", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "gpu_invisible"
RANK = 30
SAYS = "the job has more GPUs than the program can see"
SEVERITY = "critical"
THRESHOLDS = {
    "hidden_min": Threshold(
        1.0, "GPUs", "none needed: a GPU that the job holds and the program cannot see is lost"
    ),
}

_VARIABLES = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


def judge(context: RuleContext) -> list[Finding] | Abstention:
    """Compare the GPUs that the scheduler gave with those that the program sees.

    Of several tasks on a node the recorder sees with the eyes of one: where each may see as many
    others, nothing is known to be hidden.
    """
    alike: dict[tuple[int, int], list[NodeSummary]] = {}
    tasks = {node.name: max(1, len(node.ranks)) for node in context.run.nodes}
    for node in context.summary.nodes:
        allocation = allocation_of(context.run, node.name)
        held, seen = allocation.gpus_held, len(node.gpus)
        if allocation.scheduler is None:
            continue
        if held is None:
            if seen:
                context.figure(node, "number of GPUs held", Missing(Reason.UNRECORDED))
        elif seen < held <= seen * tasks[node.name]:
            context.figure(node, "GPUs that its other tasks see", Missing(Reason.UNRECORDED))
        elif held - seen >= context.limit("hidden_min"):
            alike.setdefault((held, seen), []).append(node)
    return context.outcome(
        [_finding(context, held, seen, nodes) for (held, seen), nodes in alike.items()]
    )


def _finding(context: RuleContext, held: int, seen: int, nodes: list[NodeSummary]) -> Finding:
    environment = context.run.environment
    given = {name: environment[name] for name in _VARIABLES if name in environment}
    visible = [NodeGpu(nodes[0], gpu) for gpu in nodes[0].gpus]
    fewer = (
        advice.use_gpus(context.scheduler, visible, 1)
        if seen
        else "leave the GPU out of the request"
    )
    return context.finding(
        Severity.CRITICAL,
        f"The job holds {held} GPU{'s' if held > 1 else ''} on {name_all(nodes)}"
        f"{' each' if len(nodes) > 1 else ''}, and the program can see {seen or 'none'}.",
        evidence=(
            *per_place("GPUs held", "", [(node, float(held)) for node in nodes]),
            *per_place("GPUs visible", "", [(node, float(seen)) for node in nodes]),
            *(Evidence(name, value or "set, and empty") for name, value in given.items()),
        ),
        judged_by=["hidden_min"],
        action=f"{_reveal(context, list(given))}; or {fewer}.",
        subjects=nodes,
    )


def _reveal(context: RuleContext, given: list[str]) -> str:
    if given:
        return f"See whether `unset {' '.join(given)}` before the program shows them all"
    return (
        context.scheduler_advice.show_gpus or "Find what hides them: `env | grep VISIBLE_DEVICES`"
    )
