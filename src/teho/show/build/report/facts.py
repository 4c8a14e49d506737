"""The facts of a report on a run."""

from __future__ import annotations

from collections.abc import Iterable

from teho.config.electricity import Electricity
from teho.explain.analysis import Analysis
from teho.explain.places import known_part
from teho.explain.step import ending, failed, first_failure
from teho.explain.totals import cores_used, mean_of, memory_of
from teho.explain.wording import listed
from teho.model.document import Fact
from teho.model.missing import Missing
from teho.model.run import Run, RunState
from teho.model.summary import Figure, Summary
from teho.show.build.report.activity import activity_facts
from teho.show.build.report.energy import energy_facts
from teho.show.build.report.pace import pace_facts
from teho.show.build.report.step import ended_words, node_count
from teho.units import format_bytes

__all__ = ["facts_of"]


def facts_of(analysis: Analysis) -> Iterable[Fact]:
    """Yield the facts of a report, in their order."""
    run, state, summary = analysis.run, analysis.state, analysis.summary
    yield Fact("elapsed_s", "Time", summary.elapsed_s, "s")
    yield Fact("ended", "Ended", _ending(run, state))
    if run.imported:
        tools = " and ".join(run.imported.tools)
        yield Fact("imported", "Log", f"{tools}, {listed(run.imported.files)}")
    yield from _job_facts(run)
    cores = sum(node.cores for node in summary.nodes)
    nodes = node_count(run)
    if nodes > 1:
        recorded = len(run.nodes)
        yield Fact(
            "nodes", "Nodes", nodes, note="" if recorded == nodes else f"{recorded} recorded"
        )
    if run.step and run.has_tasks:
        yield Fact("task_count", "Tasks", run.step.task_count)
    yield Fact(
        "cores_used", "Cores used", cores_used(run, summary), note=f"of {cores:,}" if cores else ""
    )
    peak, limit = memory_of(summary)
    note = "" if isinstance(limit, Missing) else f"of {format_bytes(limit)}"
    yield Fact("memory_peak_bytes", "Memory", peak, "bytes", note)
    yield from pace_facts(state, summary)
    if summary.gpus:
        yield Fact("gpu_count", "GPUs", len(summary.gpus))
        yield from _gpu_facts(run, state, summary, analysis.electricity)
    yield from _accounting_facts(run, state, summary, limit)


def _accounting_facts(run: Run, state: RunState, summary: Summary, limit: Figure) -> Iterable[Fact]:
    """Yield facts that only `seff` and programs show."""
    cores = sum(node.cores for node in summary.nodes)
    yield Fact("state_words", "State", _accounting_state(run, state), aside=True)
    yield Fact("node_count", "Nodes", node_count(run), aside=True)
    if cores:
        yield Fact("cores_per_node", "Cores per node", cores // len(summary.nodes), aside=True)
        yield Fact(
            "core_walltime_s", "Core time allocated", cores * summary.elapsed_s, "s", aside=True
        )
    yield Fact("cpu_used_s", "CPU time used", summary.cpu_s, "s", aside=True)
    yield Fact("memory_limit_bytes", "Memory limit", limit, "bytes", aside=True)


def _gpu_facts(
    run: Run, state: RunState, summary: Summary, electricity: Electricity
) -> Iterable[Fact]:
    gpus = summary.gpus
    seen = sum(known_part(gpu.stats.get("gpu_busy_percent"), "mean") is not None for gpu in gpus)
    note = f"{seen} of {len(gpus)} GPUs" if 0 < seen < len(gpus) else ""
    yield Fact("gpu_busy_percent", "GPU busy", mean_of(gpus, "gpu_busy_percent"), "%", note)
    yield from activity_facts(summary)
    yield from energy_facts(run, state, summary, electricity)


def _job_facts(run: Run) -> Iterable[Fact]:
    allocations = [node.allocation for node in run.nodes if node.allocation.job_id]
    if not allocations:
        return
    first = allocations[0]
    yield Fact("job_id", "Job", first.job_id)
    if first.cluster:
        yield Fact("cluster", "Cluster", first.cluster)
    if first.partition:
        yield Fact("partition", "Partition", first.partition)


def _ending(run: Run, state: RunState) -> str:
    if run.step and any(task.end for task in run.tasks):
        return ended_words(run, run.step, state)
    if run.end is None:
        if state is RunState.RUNNING:
            return "still running"
        by_job = "ended with the job" if run.is_automatic else "was cut off"
        return f"not known, the recorder {by_job}"
    return ending(run.end)


def _accounting_state(run: Run, state: RunState) -> str:
    """Return the state in the words of Slurm's accounting."""
    end = run.end or first_failure(run)
    if end is None or state is RunState.RUNNING:
        return "RUNNING" if state is RunState.RUNNING else "UNKNOWN"
    if end.exit_code is None and end.signal is None:
        return (end.job_state or "unknown").upper()
    if end.signal is not None:
        return f"{'FAILED' if failed(end) else 'CANCELLED'} (signal {end.signal})"
    return f"{'FAILED' if failed(end) else 'COMPLETED'} (exit code {end.exit_code})"
