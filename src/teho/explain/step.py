"""The tasks and nodes of a step: their clocks, how they ended, and which are missing.

All functions also work for a run of one program: it has one node and no tasks.
"""

from __future__ import annotations

import signal

from teho.model.run import End, Node, Run, RunState
from teho.model.summary import NodeSummary, Summary

__all__ = [
    "absent_hosts",
    "ending",
    "failed",
    "first_failure",
    "node_ends_s",
    "offset_s",
    "rank_at",
    "silent_ranks",
    "stopped_early",
]

_LAG_S = 15.0
"""A recorder writes its rows every 10 s: a kill loses at most these rows."""
_LAG_PART = 0.002
"""A row of a long run covers up to this part of the run, and is written when it is complete."""
_SILENT_S = 90.0
"""During a run: on a slow file system, rows appear late."""


_JOB_STATES = {
    "running": "the job was still running",
    "suspended": "the job was suspended",
    "completing": "the job has ended",
    "completed": "the job has ended",
    "failed": "the job failed",
    "cancelled": "the job was cancelled",
    "timed_out": "the job reached its time limit",
    "out_of_memory": "the job ran out of memory",
    "node_failed": "a node of the job failed",
    "preempted": "the job was preempted",
}


def offset_s(run: Run, node: Node) -> float:
    """Return the difference between a node's `elapsed_s` and the seconds after the run's start."""
    return run.moment_s(node.name, node.started_at)


def node_ends_s(run: Run) -> dict[str, float]:
    """Return the end of a run in each node's `elapsed_s`; empty if the end is not known."""
    end = run.end
    return {} if end is None else {n.name: end.elapsed_s - offset_s(run, n) for n in run.nodes}


_FAILED_STATES = frozenset(
    {"failed", "cancelled", "timed_out", "out_of_memory", "node_failed", "preempted"}
)


def failed(end: End) -> bool:
    """Return whether a program failed: neither exit code 0 nor ended on purpose."""
    if end.exit_code is None and end.signal is None:
        return not end.on_purpose and end.job_state in _FAILED_STATES
    return not end.on_purpose and (end.exit_code != 0 or end.signal is not None)


def ending(end: End) -> str:
    """Return how a program ended: `exit code 0`, `by SIGKILL`, `the job failed`."""
    if end.on_purpose:
        return end.on_purpose
    if end.signal is None and end.exit_code is None:
        return _JOB_STATES.get(end.job_state, "not known")
    if end.signal is None:
        return f"exit code {end.exit_code}"
    try:
        return f"by {signal.Signals(end.signal).name}"
    except ValueError:
        return f"by signal {end.signal}"


def first_failure(run: Run) -> End | None:
    """Return how the first failed task ended; None if no task is known to have failed."""
    failures = [
        (run.moment_s(task.node, task.end.at), task.rank, task.end)
        for task in run.tasks
        if task.end is not None and failed(task.end)
    ]
    return min(failures)[2] if failures else None


def rank_at(run: Run, node_name: str, position: int) -> int | None:
    """Return the rank at the position of a GPU, if the node has one rank for each GPU."""
    node = run.node(node_name)
    if node is None or len(node.ranks) != len(node.devices) or position >= len(node.ranks):
        return None
    return sorted(node.ranks)[position]


def silent_ranks(run: Run) -> dict[str, tuple[int, ...]]:
    """Return the ranks without a known end, by node; ranks without a node are under ``""``."""
    if run.step is None or not run.has_tasks:
        return {}
    ended = {task.rank for task in run.tasks if task.end is not None}
    left = set(range(run.step.task_count)) - ended
    silent = {node.name: tuple(sorted(left & set(node.ranks))) for node in run.nodes}
    nowhere = left.difference(*(node.ranks for node in run.nodes))
    return {name: ranks for name, ranks in {**silent, "": tuple(sorted(nowhere))}.items() if ranks}


def absent_hosts(run: Run) -> tuple[str, ...]:
    """Return the step's nodes without a recording, in the order of their tasks."""
    if run.step is None:
        return ()
    there = {_short(node.name) for node in run.nodes}
    return tuple(host for host in run.step.hosts if _short(host) not in there)


def _short(host: str) -> str:
    """Return a host's name without its domain, which is not always given."""
    return host.partition(".")[0]


def stopped_early(run: Run, state: RunState, summary: Summary) -> tuple[NodeSummary, ...]:
    """Return the nodes of a run on several nodes whose rows stop before the end of the run.

    A node whose recorder ended normally is not included: its tasks ended before the others.
    """
    lag_s = _LAG_S + 2 * run.period_s + _LAG_PART * summary.elapsed_s
    if state is RunState.RUNNING:
        lag_s = max(lag_s, _SILENT_S)
    cut_off = {node.name for node in run.nodes if not node.sealed}
    return tuple(
        node
        for node in summary.nodes
        if len(run.nodes) > 1
        and node.name in cut_off
        and node.last_s is not None
        and summary.elapsed_s - node.last_s > lag_s
    )
