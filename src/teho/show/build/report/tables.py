"""The tables of a report: nodes, GPUs, tasks, CPU, memory, input and output."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import TypeVar

import msgspec

from teho.explain.step import absent_hosts, ending, silent_ranks
from teho.explain.totals import energy_of, mean_of
from teho.model.document import Cell, Table
from teho.model.finding import Threshold
from teho.model.missing import Missing, Reason
from teho.model.run import Run, RunState
from teho.model.summary import Figure, NodeSummary, Stat, Summary
from teho.show.build.layout import ColumnOf, column, is_known, table
from teho.show.build.report.activity import GPU_ACTIVITY, activity_tables
from teho.show.build.report.energy import GPU_ENERGY, NODE_ENERGY, energy_tables
from teho.show.build.report.figures import (
    NodeGpu,
    figure_of,
    largest,
    mean,
    table_of_gpus,
    watt_hours,
)
from teho.show.build.report.ranking import Judged, ranked
from teho.show.cells import BUSY_MEANS

__all__ = ["tables_of"]

T = TypeVar("T")
Limits = Mapping[str, Threshold]


def tables_of(run: Run, state: RunState, summary: Summary, limits: Limits) -> tuple[Table, ...]:
    """Return every table that has rows; if there are several nodes, with their outliers.

    Args:
        run: the description of the recording.
        state: whether the run has ended.
        summary: its figures.
        limits: the thresholds of outliers.
    """
    tables = list(_of_devices(summary))
    if run.imported:
        # A log of GPUs says nothing about cores, memory and files.
        tables = [one for one in tables if any(map(is_known, _figures_of(one)))]
    if len(summary.nodes) + len(absent_hosts(run)) > 1:
        judged = (_NODES, _GPUS, GPU_ACTIVITY, GPU_ENERGY, _CPUS, _MEMORY, _IO, NODE_ENERGY)
        by_key = {key: (noun, columns) for key, noun, columns in judged}
        tables = [
            ranked(one, *by_key[one.key], limits) for one in (_node_table(run, summary), *tables)
        ]
    if run.has_tasks and (tasks := _task_table(run, state)).rows:
        ended_badly = [
            place for place, row in enumerate(tasks.rows) if row["ended"] != "exit code 0"
        ]
        if all(row["ended"] == tasks.rows[0]["ended"] for row in tasks.rows):
            ended_badly = []  # all ended alike, as in a cancelled job: no task is an outlier
        ended_badly.sort(key=lambda place: _after_s(tasks.rows[place]))
        place = sum(one.key in {"nodes", "gpus", "gpu_activity"} for one in tables)
        tables.insert(place, ranked(tasks, *_TASKS[1:], limits, first=ended_badly))
    return tuple(tables)


def _figures_of(table: Table) -> Iterable[Cell]:
    """Yield the figures of a table, without the names of what they are about."""
    return (cell for row in table.rows for cell in row.values() if not isinstance(cell, str))


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
    gpus = bool(summary.gpus)
    energy = any(not isinstance(gpu.energy_j, Missing) for gpu in summary.gpus)
    recorded = table(
        "nodes",
        "Nodes",
        summary.nodes,
        column("node", "Node", _name),
        column("tasks", "Tasks", lambda node: ranks.get(node.name, 0)) if run.has_tasks else None,
        column("gpus", "GPUs", lambda node: len(node.gpus)) if gpus else None,
        column("busy", "GPU busy", _gpu_busy, unit="%", decimals=1) if gpus else None,
        column("energy", "Energy", _gpu_energy, unit="J") if energy else None,
        column("used", "Cores used", lambda node: node.cpu_cores_used, decimals=1),
        column("memory", "Memory", lambda node: node.memory_peak_bytes, unit="bytes"),
        column("recorded", "Recorded", lambda node: node.covered_s, unit="s"),
        note="The column Memory shows the peak of the memory use."
        + (" The column GPU busy shows the mean of the node's GPUs." if gpus else ""),
    )
    gone = Missing(Reason.UNRECORDED, "this node left no recording")
    empty: dict[str, Cell] = dict.fromkeys((one.key for one in recorded.columns), gone)
    absent = [empty | {"node": host} for host in absent_hosts(run)]
    return msgspec.structs.replace(recorded, rows=(*recorded.rows, *absent))


def _gpu_busy(node: NodeSummary) -> Cell:
    return mean_of(node.gpus, "gpu_busy_percent") if node.gpus else None


def _gpu_energy(node: NodeSummary) -> Cell:
    return energy_of(node.gpus) if node.gpus else None


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
    """Return the tasks that reported their end and, once the run is over, those that did not."""
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
        silent = Missing(
            Reason.UNRECORDED, "`teho run` was killed before it could report the value"
        )
        keys = ("ended", "elapsed", "cpu", "process")
        for node, ranks in silent_ranks(run).items():
            for rank in ranks:
                rows[rank] = {"rank": rank, "node": node or None, **dict.fromkeys(keys, silent)}
    labels = (
        ("rank", "Rank", ""),
        ("node", "Node", ""),
        ("ended", "Ended", ""),
        ("elapsed", "After", "s"),
        ("cpu", "CPU time", "s"),
        ("process", "Largest process", "bytes"),
    )
    return table(
        "tasks",
        "Tasks",
        [rows[rank] for rank in sorted(rows)],
        *[column(key, label, itemgetter(key), unit=unit) for key, label, unit in labels],
        note="The column After shows when the task ended: the time since the start of the run. "
        "The columns CPU time and Largest process include the processes that the task started.",
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
    # A terminal has no room for all columns next to the names of nodes and the outliers.
    several = len(summary.nodes) > 1
    return table_of_gpus(
        "gpus",
        "GPUs",
        summary,
        *_statistics("load", "GPU busy", _of_gpu("gpu_busy_percent"), "%", 2,
                     aside=("std",) if several else ()),
        *_statistics("memory", "GPU memory", _of_gpu("gpu_memory_used_bytes"), "bytes", 2,
                     shown_in="GiB", aside=("mean", "std") if several else ()),
        watt_hours("energy", "Energy", lambda pair: pair[1].energy_j),
        column("power_mean", "Power", lambda pair: mean(_of_gpu("gpu_power_w")(pair)),
               unit="W", decimals=0),
        column("model", "Model", lambda pair: pair[1].device.name or None),
        note=BUSY_MEANS,
    )  # fmt: skip


def _of_gpu(metric: str) -> Callable[[NodeGpu], Stat | Missing]:
    return lambda pair: figure_of(pair[1].stats, metric)


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


_CORES_UNKNOWN = Missing(Reason.UNRECORDED, "the cores of the job are not known")


def _cpu_table(summary: Summary) -> Table:
    return table(
        "cpus",
        "CPU",
        summary.nodes,
        column("node", "Node", _name),
        column("cores", "Cores", lambda node: node.cores or _CORES_UNKNOWN),
        column("used", "Used by program", lambda node: node.cpu_cores_used, decimals=2),
        *_statistics("busy", "Cores busy", _of_node("cpu_busy_percent"), "%", 1),
        column("iowait", "I/O wait", lambda node: mean(_of_node("cpu_iowait_percent")(node)),
               unit="%", decimals=1),
        column("threads", "Threads", lambda node: largest(_of_node("job_threads")(node)),
               decimals=0),
        note="The column Cores busy includes the work of other programs on these cores. The column "
        "Threads shows the largest number of threads at one time.",
    )  # fmt: skip


def _name(node: NodeSummary) -> str:
    return node.name


def _of_node(metric: str) -> Callable[[NodeSummary], Stat | Missing]:
    return lambda node: figure_of(node.stats, metric)


_LIMIT_WORDS = {
    "cgroup": "the job's cgroup",
    "gpus": "the GPUs' share of the node",
    "scheduler": "what the job requested",
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
    return table(
        "memory",
        "Memory",
        summary.nodes,
        column("node", "Node", _name),
        column("peak", "Peak", lambda node: node.memory_peak_bytes, unit="bytes"),
        column("limit", "Limit", lambda node: node.memory_limit_bytes, unit="bytes"),
        column("share", "Used", _share_of_memory, unit="%", decimals=1),
        column("source", "Limit is", lambda node: _LIMIT_WORDS.get(node.memory_limit_source)),
        column("cache", "Page cache", lambda node: largest(_of_node("job_cache_bytes")(node)),
               unit="bytes"),
        note="The column Peak does not include the page cache (file data in memory), which the "
             "system frees if a program needs the memory.",
    )  # fmt: skip


def _share_of_memory(node: NodeSummary) -> Cell:
    peak, limit = node.memory_peak_bytes, node.memory_limit_bytes
    if isinstance(peak, Missing) or isinstance(limit, Missing):
        return peak if isinstance(peak, Missing) else limit
    return 100 * peak / limit if limit > 0 else None


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
    def total(metric: str) -> Callable[[NodeSummary], Figure]:
        return lambda node: figure_of(node.totals, metric)

    return table(
        "io",
        "Input and output",
        summary.nodes,
        column("node", "Node", _name),
        *(
            column(key, label, total(metric), band=band, unit="bytes")
            for key, metric, label, band in _IO_COLUMNS
        ),
        note="The columns under Program show what the program read from storage and wrote to "
        "storage. Data that were already in memory (page cache) are not included. The other "
        "columns are for the whole node.",
    )


def _statistics(
    prefix: str,
    band: str,
    stat: Callable[[T], Stat | Missing],
    unit: str,
    decimals: int,
    *,
    shown_in: str = "",
    aside: tuple[str, ...] = (),
) -> Iterable[ColumnOf[T]]:
    def part(name: str) -> Callable[[T], Cell]:
        def cell(one: T) -> Cell:
            known = stat(one)
            if name == "mean":
                return mean(known)
            if name == "max":
                return largest(known)
            return known if isinstance(known, Missing) else known.std

        return cell

    for name, label in (("mean", "Mean"), ("std", "stdDev"), ("max", "Max")):
        yield column(
            f"{prefix}_{name}", label, part(name), band=band, unit=unit, shown_in=shown_in,
            decimals=decimals, aside=name in aside,
        )  # fmt: skip
