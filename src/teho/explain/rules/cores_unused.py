"""The job asked for more cores than it used."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from teho.explain.rules import _advice
from teho.explain.rules._look import Gpu, Look, allocation_of, each_of, per_place, span
from teho.model.finding import Abstention, Finding, Severity, Threshold
from teho.model.missing import Missing, Reason
from teho.model.run import Run
from teho.model.summary import Figure, NodeSummary, Summary

__all__ = ["KIND", "judge"]

KIND = "cores_unused"


class _Use(NamedTuple):
    """What one node's cores were used for."""

    node: NodeSummary
    asked: int
    used: float
    """Mean number of busy cores."""
    needed: int
    """Cores busy in the busiest time bin, rounded up; at least one a task."""
    tasks: int
    """Tasks of the recorded step on this node; 0: it is no step."""

    @property
    def percent(self) -> float:
        return 100 * self.used / self.asked


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Compare the cores that the job asked for with those that the program kept busy.

    Outside a job nobody asked for cores. On a node whose GPUs are used, cores are
    there to feed them: they are only judged where the GPUs are well fed and the job
    asked for more than Jobstats' number for each. A core for each task is the least that
    a job can have.
    """
    look = Look(KIND, run, summary, thresholds)
    bands: dict[Severity, list[_Use]] = {severity: [] for severity in Severity}
    for node in summary.nodes:
        use = _use(look, node)
        if use is None or use.percent >= look.limit("used_percent") or use.asked <= use.tasks:
            continue
        used = look.gpu_used(node)
        if used is False:
            bands[_severity(look, use)].append(use)
        elif used and _more_than_the_gpus_need(look, use):
            bands[Severity.REMARK].append(use)
    return look.outcome(
        [_finding(look, severity, band) for severity, band in bands.items() if band]
    )


def _use(look: Look, node: NodeSummary) -> _Use | None:
    allocation = allocation_of(look.run, node.name)
    if allocation.scheduler is None:
        return None
    asked = allocation.cores_asked or node.cores
    told: Figure = float(asked) if asked else Missing(Reason.UNRECORDED)
    used = look.figure(node, "CPU cores used", node.cpu_cores_used)
    if look.figure(node, "cores of the job", told) is None or used is None:
        return None
    rates = [rate for rate in node.series.get("job_cpu_s", ()) if rate is not None]
    # A bin's rate is a few hundredths off: 8.02 busy cores are 8.
    needed = math.ceil(max([used, *rates]) - 0.05)
    tasks = next((len(of.ranks) for of in look.run.nodes if of.name == node.name), 0)
    return _Use(node, asked, used, max(1, tasks, needed), tasks)


def _more_than_the_gpus_need(look: Look, use: _Use) -> bool:
    gpus = [Gpu(use.node, gpu) for gpu in use.node.gpus]
    busy = [look.stat(of, "gpu_busy_percent") for of in gpus]
    return use.asked > look.limit("cores_per_gpu") * len(gpus) and all(
        stat is not None and stat.mean >= look.limit("gpu_busy_percent") for stat in busy
    )


def _severity(look: Look, use: _Use) -> Severity:
    if use.needed >= use.asked:
        return Severity.REMARK
    if use.percent < look.limit("critical_percent"):
        return Severity.CRITICAL
    return Severity.WARNING if use.percent < look.limit("warning_percent") else Severity.REMARK


def _finding(look: Look, severity: Severity, uses: list[_Use]) -> Finding:
    nodes = [use.node for use in uses]
    graded = {Severity.CRITICAL: ["critical_percent"], Severity.WARNING: ["warning_percent"]}
    return look.finding(
        severity,
        f"The program kept {span([use.used for use in uses], '')} of "
        f"{span([use.asked for use in uses], '')} cores busy on {each_of(nodes)}.",
        evidence=(
            *per_place("cores used, mean", "cores", [(use.node, use.used) for use in uses]),
            *per_place("cores used, busiest", "cores", [(use.node, use.needed) for use in uses]),
            *per_place("cores asked for", "cores", [(use.node, use.asked) for use in uses]),
        ),
        judged_by=["used_percent", *graded.get(severity, [])],
        action=_action(look, nodes[0], max(use.needed for use in uses), uses[0].asked),
        subjects=nodes,
    )


def _action(look: Look, node: NodeSummary, needed: int, asked: int) -> str:
    if needed >= asked:
        return (
            f"It used all {asked} cores at its busiest: keep them, or run the part that needs few "
            "cores in a job of its own."
        )
    fewer = _advice.ask_cores(look.run, node, needed)
    cores = "core is" if needed == 1 else "cores are"
    return f"{needed} {cores} enough for its busiest time: {fewer}."
