"""The tables of the view: nodes, GPUs, tasks, CPU, memory, input and output."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TypeVar

from teho.explain.step import absent_hosts, ending, silent_ranks
from teho.explain.totals import energy_of, mean_of
from teho.model.document import Cell, Column, Table
from teho.model.finding import Threshold
from teho.model.missing import Missing, Reason
from teho.model.run import Run, RunState
from teho.model.summary import Figure, NodeSummary, Stat, Summary
from teho.show.build.report.activity import GPU_ACTIVITY, activity_tables
from teho.show.build.report.energy import GPU_ENERGY, NODE_ENERGY, energy_tables
from teho.show.build.report.ranking import Judged, ranked
from teho.show.cells import BUSY_MEANS

__all__ = ["tables_of"]

T = TypeVar("T")
Limits = Mapping[str, Threshold]


def tables_of(run: Run, state: RunState, summary: Summary, limits: Limits) -> tuple[Table, ...]:
    """Lay out every table that has rows; those of several nodes begin with what stands out.

    Args:
        run: what the recording says of itself.
        state: whether it goes on.
        summary: its figures.
        limits: the policy's thresholds of outliers.
    """
    tables = list(_of_devices(summary))
    if len(summary.nodes) + len(absent_hosts(run)) > 1:
        judged = (_NODES, _GPUS, GPU_ACTIVITY, GPU_ENERGY, _CPUS, _MEMORY, _IO, NODE_ENERGY)
        by_key = {key: (noun, columns) for key, noun, columns in judged}
        tables = [
            ranked(table, *by_key[table.key], limits)
            for table in (_node_table(run, summary), *tables)
        ]
    if run.has_tasks and (tasks := _task_table(run, state)).rows:
        grave = [place for place, row in enumerate(tasks.rows) if row["ended"] != "exit code 0"]
        if all(row["ended"] == tasks.rows[0]["ended"] for row in tasks.rows):
            grave = []  # where all were ended alike, as a cancelled job's are, none stands out
        grave.sort(key=lambda place: _after_s(tasks.rows[place]))
        place = sum(table.key in {"nodes", "gpus", "gpu_activity"} for table in tables)
        tables.insert(place, ranked(tasks, *_TASKS[1:], limits, first=grave))
    return tuple(tables)


def _of_devices(summary: Summary) -> Iterable[Table]:
    if summary.gpus:
        yield _gpu_table(summary)
        yield from activity_tables(summary)
    if summary.nodes:
        yield _cpu_table(summary)
        yield _memory_table(summary)
        yield _io_table(summary)
    yield from energy_tables(summary)


# Several nodes


_NODES = (
    "nodes",
    "node",
    (
        Judged("busy", "less busy", "busier"),
        Judged("used", "fewer cores", "more cores", unit="cores"),
        Judged("memory", "less memory", "more memory"),
        Judged("recorded", "recorded for less", "recorded for longer"),
    ),
)


def _node_table(run: Run, summary: Summary) -> Table:
    ranks = {node.name: len(node.ranks) for node in run.nodes}
    energy = any(not isinstance(gpu.energy_j, Missing) for gpu in summary.gpus)
    columns = [
        Column(key="node", label="Node"),
        *([Column(key="tasks", label="Tasks")] if run.has_tasks else []),
        *([Column(key="gpus", label="GPUs")] if summary.gpus else []),
        *([Column(key="busy", label="GPU busy", unit="%", decimals=1)] if summary.gpus else []),
        *([Column(key="energy", label="Energy", unit="J")]
          if energy else []),
        Column(key="used", label="Cores used", decimals=1),
        Column(key="memory", label="Memory", unit="bytes"),
        Column(key="recorded", label="Recorded", unit="s"),
    ]  # fmt: skip
    keys = [column.key for column in columns]
    rows = [
        {key: cell for key, cell in _node_row(node, ranks.get(node.name, 0)).items() if key in keys}
        for node in summary.nodes
    ]
    gone = Missing(Reason.UNRECORDED, "this node left no recording")
    rows += [{**dict.fromkeys(keys, gone), "node": host} for host in absent_hosts(run)]
    return Table(
        key="nodes",
        title="Nodes",
        columns=tuple(columns),
        rows=tuple(rows),
        note="Memory is the peak"
        + (", GPU busy the mean of the node's GPUs." if summary.gpus else "."),
    )


def _node_row(node: NodeSummary, ranks: int) -> dict[str, Cell]:
    return {
        "node": node.name,
        "tasks": ranks,
        "gpus": len(node.gpus),
        "busy": mean_of(node.gpus, "gpu_busy_percent") if node.gpus else None,
        "energy": energy_of(node.gpus) if node.gpus else None,
        "used": node.cpu_cores_used,
        "memory": node.memory_peak_bytes,
        "recorded": node.covered_s,
    }


_TASKS = (
    "tasks",
    "task",
    (
        Judged("elapsed", "ended sooner", "ended later"),
        Judged("cpu", "less CPU time", "more CPU time"),
        Judged("process", "less memory", "more memory"),
    ),
)


def _task_table(run: Run, state: RunState) -> Table:
    """List the tasks that told their end and, once the run is over, those that did not."""
    rows: dict[int, dict[str, Cell]] = {
        task.rank: {
            "rank": task.rank,
            "node": task.node,
            "ended": ending(task.end),
            "elapsed": run.moment_s(task.node, task.end.at),
            "cpu": task.end.cpu_s,
            "process": task.end.peak_process_bytes,
        }
        for task in run.tasks
        if task.end is not None
    }
    if state is not RunState.RUNNING:
        silent = Missing(Reason.UNRECORDED, "its `teho run` was killed before it could report it")
        keys = ("ended", "elapsed", "cpu", "process")
        for node, ranks in silent_ranks(run).items():
            for rank in ranks:
                rows[rank] = {"rank": rank, "node": node or None, **dict.fromkeys(keys, silent)}
    return Table(
        key="tasks",
        title="Tasks",
        columns=(
            Column(key="rank", label="Rank"),
            Column(key="node", label="Node"),
            Column(key="ended", label="Ended"),
            Column(key="elapsed", label="After", unit="s"),
            Column(key="cpu", label="CPU time", unit="s"),
            Column(key="process", label="Largest process", unit="bytes"),
        ),
        rows=tuple(rows[rank] for rank in sorted(rows)),
        note="After: since the start of the run. CPU time and the largest process count what "
        "the task started, too.",
    )


def _after_s(row: Mapping[str, Cell]) -> float:
    after_s = row["elapsed"]
    return after_s if isinstance(after_s, float) else math.inf


# GPUs


_GPUS = (
    "gpus",
    "GPU",
    (
        Judged("load_mean", "less busy", "busier"),
        Judged("power_mean", "less power", "more power"),
        Judged("memory_mean", "less memory", "more memory"),
    ),
)


def _gpu_table(summary: Summary) -> Table:
    # Beside the node's name and what stands out, a terminal has no room for all of them.
    several = len(summary.nodes) > 1
    return Table(
        key="gpus",
        title="GPUs",
        columns=(
            Column(key="node", label="Node"),
            Column(key="gpu", label="GPU"),
            *_statistics("load", "GPU busy", "%", decimals=2, aside=("std",) if several else ()),
            *_statistics(
                "memory", "GPU memory", "bytes", shown_in="GiB", decimals=2,
                aside=("mean", "std") if several else (),
            ),
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
        note=BUSY_MEANS,
    )  # fmt: skip


# CPU, memory, input and output


_CPUS = (
    "cpus",
    "node",
    (
        Judged("used", "fewer cores", "more cores", unit="cores"),
        Judged("busy_mean", "less busy", "busier"),
        Judged("iowait", "", "more waiting"),
    ),
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
_MEMORY = (
    "memory",
    "node",
    (
        Judged("peak", "less memory", "more memory"),
        Judged("share", "emptier", "fuller"),
    ),
)


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


_IO_COLUMNS = (
    ("read", "job_read_bytes", "Read", "Program"),
    ("written", "job_write_bytes", "Written", "Program"),
    ("netfs_read", "netfs_read_bytes", "Read", "Network file systems"),
    ("netfs_written", "netfs_write_bytes", "Written", "Network file systems"),
    ("received", "net_receive_bytes", "In", "Network"),
    ("sent", "net_send_bytes", "Out", "Network"),
)
_IO = (
    "io",
    "node",
    (
        Judged("read", "read less", "read more"),
        Judged("written", "wrote less", "wrote more"),
        Judged("received", "received less", "received more"),
        Judged("sent", "sent less", "sent more"),
    ),
)


def _io_table(summary: Summary) -> Table:
    return Table(
        key="io",
        title="Input and output",
        columns=(
            Column(key="node", label="Node"),
            *(
                Column(key=key, label=label, band=band, unit="bytes")
                for key, _, label, band in _IO_COLUMNS
            ),
        ),
        rows=tuple(
            {
                "node": node.name,
                **{key: _of(node.totals, metric) for key, metric, _, _ in _IO_COLUMNS},
            }
            for node in summary.nodes
        ),
        note="Program: only storage; what the page cache served is left out. The others are the "
        "whole node's.",
    )


# Cells


def _statistics(
    prefix: str,
    band: str,
    unit: str,
    *,
    shown_in: str = "",
    decimals: int,
    aside: tuple[str, ...] = (),
) -> Iterable[Column]:
    for key, label in (("mean", "Mean"), ("std", "stdDev"), ("max", "Max")):
        yield Column(
            key=f"{prefix}_{key}",
            label=label,
            band=band,
            unit=unit,
            shown_in=shown_in,
            decimals=decimals,
            aside=key in aside,
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
