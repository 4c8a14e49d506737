"""From a run's figures and findings to the one view that all faces render."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeVar

from teho.model.finding import Abstention, Finding, Severity
from teho.model.missing import Missing, Reason
from teho.model.run import Run, RunState
from teho.model.summary import Figure, GpuSummary, NodeSummary, Stat, Summary
from teho.show.build_plots import plots_of
from teho.show.view import Cell, Column, Fact, Table, View
from teho.units import format_bytes, format_duration
from teho.version import __version__

__all__ = ["build_view"]

T = TypeVar("T")
VerdictSeverity = Literal["critical", "warning", "remark", "good", "unknown"]


def build_view(
    run: Run,
    state: RunState,
    summary: Summary,
    *,
    findings: Sequence[Finding] = (),
    abstentions: Sequence[Abstention] = (),
    problems: Sequence[str] = (),
    plots: bool = True,
) -> View:
    """Lay out a whole report.

    Args:
        run: what the recording says of itself.
        state: whether it goes on, has finished or was cut off.
        summary: its figures.
        findings: what the rules found, most important first.
        abstentions: what the rules could not judge.
        problems: sentences about rows that did not read.
        plots: whether to draw every metric over time; text has no use for them.
    """
    verdict, severity = _verdict(run, state, summary, findings)
    return View(
        run_id=run.id,
        name=run.name,
        command=shlex.join(run.command),
        state=state.value,
        verdict=verdict,
        verdict_severity=severity,
        facts=tuple(_facts(run, state, summary)),
        tables=tuple(_tables(summary)),
        findings=tuple(findings),
        abstentions=tuple(abstentions),
        troubles=tuple(_troubles(run, problems)),
        notes=tuple(_notes(run)),
        plots=plots_of(summary) if plots else (),
        teho_version=__version__,
    )


# Verdict


def _verdict(
    run: Run, state: RunState, summary: Summary, findings: Sequence[Finding]
) -> tuple[str, VerdictSeverity]:
    grave = [finding for finding in findings if finding.severity is not Severity.REMARK]
    if grave:
        more = len(grave) - 1
        also = f" {more} more finding{'s' if more > 1 else ''} below." if more else ""
        return grave[0].sentence + also, grave[0].severity.value
    used = _use(summary)
    if used is None:
        reason = "too short to be sampled" if run.end and run.nodes else "nothing was recorded"
        return f"Not judged: {reason}.", "unknown"
    too_short = any(finding.kind == "job_too_short" for finding in findings)
    if too_short:
        return f"{used}, but it was too short to judge.", "unknown"
    ending = "nothing found to change" if state is RunState.FINISHED else _STATE_WORDS[state]
    return f"{used}; {ending}.", "good" if run.nodes else "unknown"


_STATE_WORDS = {
    RunState.RUNNING: "it is still running",
    RunState.INTERRUPTED: "the recording was cut off",
    RunState.FINISHED: "finished",
}


def _use(summary: Summary) -> str | None:
    """Say in one clause what the run used; None when nothing was sampled."""
    time = f"in {format_duration(summary.elapsed_s)}"
    busy = [
        stat.mean
        for gpu in summary.gpus
        if isinstance(stat := _of(gpu.stats, "gpu_busy_percent"), Stat)
    ]
    if busy:
        mean = sum(busy) / len(busy)
        if len(summary.gpus) == 1:
            return f"The GPU was busy {mean:.0f} % of the time {time}"
        return f"The {len(summary.gpus)} GPUs were busy {mean:.0f} % of the time {time}"
    used = [node.cpu_cores_used for node in summary.nodes]
    figures = [value for value in used if not isinstance(value, Missing)]
    if not figures:
        return None
    cores = sum(node.cores for node in summary.nodes)
    return f"The program kept {sum(figures):.1f} of {cores} cores busy {time}"


# Facts


def _facts(run: Run, state: RunState, summary: Summary) -> Iterable[Fact]:
    yield Fact("elapsed_s", "Time", summary.elapsed_s, "s")
    yield Fact("ended", "Ended", _ending(run, state))
    yield from _job_facts(run)
    cores = sum(node.cores for node in summary.nodes)
    if len(run.nodes) > 1:
        yield Fact("nodes", "Nodes", len(run.nodes))
    yield Fact(
        "cores_used", "Cores used", _cores_used(summary), note=f"of {cores}" if cores else ""
    )
    peak, limit = _memory(summary)
    note = "" if isinstance(limit, Missing) else f"of {format_bytes(limit)}"
    yield Fact("memory_peak_bytes", "Memory", peak, "bytes", note)
    if summary.gpus:
        yield Fact("gpu_count", "GPUs", len(summary.gpus))
        yield Fact("gpu_busy_percent", "GPU busy", _mean_busy(summary.gpus), "%")
        yield Fact("gpu_energy_j", "GPU energy", _energy(summary.gpus), "J")
    yield from _accounting_facts(run, state, summary, limit)


def _accounting_facts(run: Run, state: RunState, summary: Summary, limit: Figure) -> Iterable[Fact]:
    """Yield what `seff` tells and people can do without."""
    cores = sum(node.cores for node in summary.nodes)
    yield Fact("state_words", "State", _accounting_state(run, state), aside=True)
    yield Fact("node_count", "Nodes", len(run.nodes), aside=True)
    if cores:
        yield Fact("cores_per_node", "Cores per node", cores // len(summary.nodes), aside=True)
        yield Fact("core_walltime_s", "Core time", cores * summary.elapsed_s, "s", aside=True)
    yield Fact("cpu_used_s", "CPU time", summary.cpu_s, "s", aside=True)
    yield Fact("memory_limit_bytes", "Memory limit", limit, "bytes", aside=True)


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
    if run.end is None:
        return (
            "still running" if state is RunState.RUNNING else "not known, the recorder was cut off"
        )
    if run.end.signal is not None:
        try:
            return f"by {signal.Signals(run.end.signal).name}"
        except ValueError:
            return f"by signal {run.end.signal}"
    return f"exit code {run.end.exit_code}"


def _accounting_state(run: Run, state: RunState) -> str:
    """Say the state in the words of Slurm's accounting."""
    if run.end is None:
        return "RUNNING" if state is RunState.RUNNING else "UNKNOWN"
    if run.end.signal is not None:
        return f"FAILED (signal {run.end.signal})"
    word = "COMPLETED" if run.end.exit_code == 0 else "FAILED"
    return f"{word} (exit code {run.end.exit_code})"


def _cores_used(summary: Summary) -> Cell:
    """Add up the nodes' cores; a sum that lacks a part would be wrong, not smaller."""
    figures = [node.cpu_cores_used for node in summary.nodes]
    missing = [figure for figure in figures if isinstance(figure, Missing)]
    if missing or not figures:
        return missing[0] if missing else Missing(Reason.UNRECORDED, "no node was recorded")
    return sum(figure for figure in figures if not isinstance(figure, Missing))


def _memory(summary: Summary) -> tuple[Figure, Figure]:
    """Return peak and limit of the node that came nearest to its limit."""
    nothing = Missing(Reason.UNRECORDED, "no sample was taken")
    nodes = [node for node in summary.nodes if not isinstance(node.memory_peak_bytes, Missing)]
    if not nodes:
        first = summary.nodes[0] if summary.nodes else None
        return nothing, first.memory_limit_bytes if first else nothing
    fullest = max(nodes, key=_share_of_memory)
    return fullest.memory_peak_bytes, fullest.memory_limit_bytes


def _share_of_memory(node: NodeSummary) -> float:
    peak, limit = node.memory_peak_bytes, node.memory_limit_bytes
    if isinstance(peak, Missing):
        return 0.0
    return peak if isinstance(limit, Missing) else peak / limit


def _mean_busy(gpus: Sequence[GpuSummary]) -> Figure:
    stats = [_of(gpu.stats, "gpu_busy_percent") for gpu in gpus]
    figures = [stat.mean for stat in stats if isinstance(stat, Stat)]
    missing = [stat for stat in stats if isinstance(stat, Missing)]
    return sum(figures) / len(figures) if figures else missing[0]


def _energy(gpus: Sequence[GpuSummary]) -> Figure:
    """Add up the GPUs' energy; a sum that lacks a part would be wrong, not smaller."""
    missing = [gpu.energy_j for gpu in gpus if isinstance(gpu.energy_j, Missing)]
    if missing:
        return missing[0]
    return sum(gpu.energy_j for gpu in gpus if not isinstance(gpu.energy_j, Missing))


# Tables


def _tables(summary: Summary) -> Iterable[Table]:
    if summary.gpus:
        yield _gpu_table(summary)
    if summary.nodes:
        yield _cpu_table(summary)
        yield _memory_table(summary)
        yield _io_table(summary)


def _gpu_table(summary: Summary) -> Table:
    integrated = any(gpu.energy_source == "integrated power" for gpu in summary.gpus)
    return Table(
        key="gpus",
        title="GPUs",
        columns=(
            Column(key="node", label="Node"),
            Column(key="gpu", label="GPU"),
            *_statistics("load", "GPU busy", "%", decimals=2),
            *_statistics("memory", "GPU memory", "bytes", shown_in="GiB", decimals=2),
            Column(key="energy", label="Energy", unit="J", shown_in="Wh", decimals=2),
            Column(key="power_mean", label="Power", unit="W", decimals=0),
            Column(key="model", label="Model"),
        ),
        rows=tuple(
            {
                "node": node.name,
                "gpu": gpu.position,
                **_stat_cells("load", _of(gpu.stats, "gpu_busy_percent")),
                **_stat_cells("memory", _of(gpu.stats, "gpu_memory_used_bytes")),
                "energy": gpu.energy_j,
                "power_mean": _mean(_of(gpu.stats, "gpu_power_w")),
                "model": gpu.device.name,
            }
            for node in summary.nodes
            for gpu in node.gpus
        ),
        note="Busy is the share of time with at least one kernel running: it does not tell how "
        "much of the GPU that kernel used."
        + (" Energy is integrated from power: there is no counter." if integrated else ""),
    )


def _cpu_table(summary: Summary) -> Table:
    return Table(
        key="cpus",
        title="CPU",
        columns=(
            Column(key="node", label="Node"),
            Column(key="cores", label="Cores"),
            Column(key="used", label="Used by program", unit="", decimals=2),
            *_statistics("busy", "Cores busy", "%", decimals=1),
            Column(key="iowait", label="I/O wait", unit="%", decimals=1),
            Column(key="threads", label="Threads", decimals=0),
        ),
        rows=tuple(
            {
                "node": node.name,
                "cores": node.cores,
                "used": node.cpu_cores_used,
                **_stat_cells("busy", _of(node.stats, "cpu_busy_percent")),
                "iowait": _mean(_of(node.stats, "cpu_iowait_percent")),
                "threads": _largest(_of(node.stats, "job_threads")),
            }
            for node in summary.nodes
        ),
        note="Busy counts everybody's work on the job's cores; threads are the most at one time.",
    )


_LIMIT_WORDS = {
    "cgroup": "the job's cgroup",
    "scheduler": "what the job asked for",
    "node": "the whole node",
}


def _memory_table(summary: Summary) -> Table:
    return Table(
        key="memory",
        title="Memory",
        columns=(
            Column(key="node", label="Node"),
            Column(key="peak", label="Peak", unit="bytes"),
            Column(key="limit", label="Limit", unit="bytes"),
            Column(key="share", label="Used", unit="%", decimals=1),
            Column(key="source", label="Limit is"),
            Column(key="cache", label="Page cache", unit="bytes"),
        ),
        rows=tuple(
            {
                "node": node.name,
                "peak": node.memory_peak_bytes,
                "limit": node.memory_limit_bytes,
                "share": _percent(node.memory_peak_bytes, node.memory_limit_bytes),
                "source": _LIMIT_WORDS.get(node.memory_limit_source),
                "cache": _largest(_of(node.stats, "job_cache_bytes")),
            }
            for node in summary.nodes
        ),
        note="Peak leaves page cache out: the kernel gives it back when memory is needed.",
    )


_IO = (
    ("read", "job_read_bytes", "Read", "Program"),
    ("written", "job_write_bytes", "Written", "Program"),
    ("netfs_read", "netfs_read_bytes", "Read", "Network file systems"),
    ("netfs_written", "netfs_write_bytes", "Written", "Network file systems"),
    ("received", "net_receive_bytes", "In", "Network"),
    ("sent", "net_send_bytes", "Out", "Network"),
)


def _io_table(summary: Summary) -> Table:
    return Table(
        key="io",
        title="Input and output",
        columns=(
            Column(key="node", label="Node"),
            *(Column(key=key, label=label, band=band, unit="bytes") for key, _, label, band in _IO),
        ),
        rows=tuple(
            {"node": node.name, **{key: _of(node.totals, metric) for key, metric, _, _ in _IO}}
            for node in summary.nodes
        ),
        note="Program: storage alone, what the page cache served left out. The others are the "
        "whole node's.",
    )


def _statistics(
    prefix: str, band: str, unit: str, *, shown_in: str = "", decimals: int
) -> Iterable[Column]:
    for key, label in (("mean", "Mean"), ("std", "stdDev"), ("max", "Max")):
        yield Column(
            key=f"{prefix}_{key}",
            label=label,
            band=band,
            unit=unit,
            shown_in=shown_in,
            decimals=decimals,
        )


def _stat_cells(prefix: str, stat: Stat | Missing) -> dict[str, Cell]:
    if isinstance(stat, Missing):
        return {f"{prefix}_{key}": stat for key in ("mean", "std", "max")}
    return {f"{prefix}_mean": stat.mean, f"{prefix}_std": stat.std, f"{prefix}_max": stat.max}


def _mean(stat: Stat | Missing) -> Cell:
    return stat.mean if isinstance(stat, Stat) else stat


def _largest(stat: Stat | Missing) -> Cell:
    return stat.max if isinstance(stat, Stat) else stat


def _percent(part: Figure, whole: Figure) -> Cell:
    if isinstance(part, Missing):
        return part
    if isinstance(whole, Missing) or whole <= 0:
        return whole if isinstance(whole, Missing) else None
    return 100 * part / whole


def _of(figures: Mapping[str, T], name: str) -> T | Missing:
    """Return a figure, or that nobody took it down."""
    return figures.get(name, Missing(Reason.UNRECORDED, "not among the metrics looked at"))


# Notes


def _troubles(run: Run, problems: Sequence[str]) -> Iterable[str]:
    several = len(run.nodes) > 1
    seen: set[str] = set()
    for where, troubles in (("", run.troubles), *((n.name, n.troubles) for n in run.nodes)):
        for trouble in troubles:
            # The recorder tells its supervisor too, so that one of the two survives.
            if trouble.what not in seen:
                seen.add(trouble.what)
                prefix = f"{where}: " if several and where else ""
                yield f"{prefix}After {format_duration(trouble.elapsed_s)}: {trouble.what}."
    yield from dict.fromkeys(problems)


def _notes(run: Run) -> Iterable[str]:
    for node in run.nodes:
        prefix = f"{node.name}: " if len(run.nodes) > 1 else ""
        yield from (prefix + note for note in (*node.allocation.notes, *node.notes))
