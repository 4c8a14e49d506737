"""The job holds GPUs that the program cannot see."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.rules import _advice
from teho.explain.rules._look import Gpu, Look, allocation_of, name_all, per_place
from teho.model.finding import Abstention, Evidence, Finding, Severity, Threshold
from teho.model.missing import Missing, Reason
from teho.model.run import Run
from teho.model.summary import NodeSummary, Summary

__all__ = ["KIND", "judge"]

KIND = "gpu_invisible"

_VARIABLES = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Compare the GPUs that the scheduler gave with those that the program sees.

    Of several tasks on a node the recorder sees with the eyes of one: where each may see as many
    others, nothing is known to be hidden.
    """
    look = Look(KIND, run, summary, thresholds)
    alike: dict[tuple[int, int], list[NodeSummary]] = {}
    tasks = {node.name: max(1, len(node.ranks)) for node in run.nodes}
    for node in summary.nodes:
        allocation = allocation_of(run, node.name)
        held, seen = allocation.gpus_held, len(node.gpus)
        if allocation.scheduler is None:
            continue
        if held is None:
            if seen:
                look.figure(node, "number of GPUs held", Missing(Reason.UNRECORDED))
        elif seen < held <= seen * tasks[node.name]:
            look.figure(node, "GPUs that its other tasks see", Missing(Reason.UNRECORDED))
        elif held - seen >= look.limit("hidden_min"):
            alike.setdefault((held, seen), []).append(node)
    return look.outcome(
        [_finding(look, held, seen, nodes) for (held, seen), nodes in alike.items()]
    )


def _finding(look: Look, held: int, seen: int, nodes: list[NodeSummary]) -> Finding:
    environment = look.run.environment
    given = {name: environment[name] for name in _VARIABLES if name in environment}
    visible = [Gpu(nodes[0], gpu) for gpu in nodes[0].gpus]
    fewer = (
        _advice.use_gpus(look.scheduler, visible, 1) if seen else "leave the GPU out of the request"
    )
    return look.finding(
        Severity.CRITICAL,
        f"The job holds {held} GPU{'s' if held > 1 else ''} on {name_all(nodes)}"
        f"{' each' if len(nodes) > 1 else ''}, and the program can see {seen or 'none'}.",
        evidence=(
            *per_place("GPUs held", "", [(node, float(held)) for node in nodes]),
            *per_place("GPUs visible", "", [(node, float(seen)) for node in nodes]),
            *(Evidence(name, value or "set, and empty") for name, value in given.items()),
        ),
        judged_by=["hidden_min"],
        action=f"{_reveal(look, list(given))}; or {fewer}.",
        subjects=nodes,
    )


def _reveal(look: Look, given: list[str]) -> str:
    if given:
        return f"See whether `unset {' '.join(given)}` before the program shows them all"
    if look.scheduler == "slurm":
        return "Give the step all of the job's GPUs: `srun --gpu-bind=none`"
    return "Find what hides them: `env | grep VISIBLE_DEVICES`"
