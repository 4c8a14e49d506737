"""A program that uses one core has many."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.rules import _advice
from teho.explain.rules._look import Look, allocation_of, each_of, per_place, span
from teho.model.finding import Abstention, Evidence, Finding, Severity, Threshold
from teho.model.run import Run
from teho.model.summary import NodeSummary, Summary

__all__ = ["KIND", "judge"]

KIND = "serial_program"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Find nodes on which the program kept one core's worth busy, of two or more.

    CPU efficiency ÷ (100 % ÷ cores), Jobstats' formula, is the mean number of cores
    used. A node whose GPU is used is left out: there one thread that drives it is
    usual, and the cores beside it may be what feeds it better.
    """
    look = Look(KIND, run, summary, thresholds)
    serial: list[tuple[NodeSummary, float, int]] = []
    for node in summary.nodes:
        cores = allocation_of(run, node.name).cores_asked or node.cores
        used = look.figure(node, "CPU cores used", node.cpu_cores_used)
        if cores < 2 or used is None:
            continue
        alone = look.limit("one_core_min") <= used <= look.limit("one_core_max")
        if alone and look.gpu_used(node) is False:
            serial.append((node, used, cores))
    return look.outcome([_finding(look, serial)] if serial else [])


def _finding(look: Look, serial: list[tuple[NodeSummary, float, int]]) -> Finding:
    nodes = [node for node, _, _ in serial]
    cores = [cores for _, _, cores in serial]
    unused_percent = 100 * (1 - sum(used for _, used, _ in serial) / sum(cores))
    if look.scheduler is None:
        # Nobody waits for the idle cores of one's own machine.
        severity = Severity.REMARK
    elif unused_percent >= look.limit("unused_critical_percent"):
        severity = Severity.CRITICAL
    else:
        severity = Severity.WARNING
    threads = look.run.environment.get("OMP_NUM_THREADS")
    return look.finding(
        severity,
        f"The program used one core of {span(cores, '')} on {each_of(nodes)}.",
        evidence=(
            *per_place("cores used, mean", "cores", [(node, used) for node, used, _ in serial]),
            *per_place("cores of the job", "cores", [(node, float(n)) for node, _, n in serial]),
            *([Evidence("OMP_NUM_THREADS", threads)] if threads else []),
        ),
        judged_by=["one_core_min", "one_core_max", "unused_critical_percent"],
        action=_action(look, nodes[0], max(cores), threads),
        subjects=nodes,
    )


def _action(look: Look, node: NodeSummary, cores: int, threads: str | None) -> str:
    parallel = f"spread the work: `multiprocessing.Pool({cores})`"
    if threads == "1":
        parallel = f"let its libraries use more, `export OMP_NUM_THREADS={cores}`, or {parallel}"
    fewer = _advice.ask_cores(look.run, node, 1)
    return (
        f"Ask for one core, {fewer}; or {parallel}." if fewer else f"To make it faster, {parallel}."
    )
