"""Print the table of `teho launch --dry-run`: the set-up of every rank."""

from __future__ import annotations

import copy
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from teho.launch.binding import step_masks
from teho.launch.checking.task import spans
from teho.launch.options import Options
from teho.launch.prepare import Launch, prepare, prepare_task
from teho.schedulers.hostlist import expand_counts
from teho.schedulers.task import Task, is_batch_script, rank_places

__all__ = ["print_table"]

_MOST_ROWS = 256


def print_table(options: Options, environment: Mapping[str, str], host: str) -> int:
    """Print the table on rank 0, and return the exit code.

    In the job script itself, the table has the tasks that `srun` would start. Other nodes are
    assumed to be like this one.

    Raises:
        TehoError: the environment contradicts itself, or an option is impossible.
    """
    if is_batch_script(environment):
        environment = _as_step(environment)
    mine = frozenset(os.sched_getaffinity(0))
    first = prepare(options, environment, host, mine)
    if first.task.rank:
        return 0
    masks = step_masks(environment)
    plans = []
    for task in _tasks(first.task)[:_MOST_ROWS]:
        bound = masks and mine == masks[first.task.local_rank % len(masks)]
        cores = masks[task.local_rank % len(masks)] if bound else mine
        plans.append(prepare_task(task, options, environment, cores, {}))
    sys.stdout.write("\n".join([*_lines(first, plans, options, host), ""]))
    return 0


def _as_step(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the first task of an `srun` without options."""
    first = {"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0"}
    total = str(sum(expand_counts(environment.get("SLURM_TASKS_PER_NODE", "1"))))
    return {**environment, "SLURM_STEP_NUM_TASKS": total, **first}


def _tasks(task: Task) -> list[Task]:
    """Return every task of the step by rank; only this task if the others are unknown."""
    tasks = []
    for rank, (node, local) in enumerate(rank_places(task)):
        other = copy.copy(task)
        other.rank, other.node_rank, other.local_rank = rank, node, local
        other.local_size = task.tasks_per_node[node]
        tasks.append(other)
    return tasks or [task]


def _lines(first: Launch, plans: Sequence[Launch], options: Options, host: str) -> Iterator[str]:
    task = first.task
    nodes = task.node_count or (1 if task.local_size == task.size else None)
    started = f", started by {task.started_by}" if task.started_by else ""
    where = f" on {nodes} {'node' if nodes == 1 else 'nodes'}" if nodes else ""
    yield f"{task.size} {'rank' if task.size == 1 else 'ranks'}{where}{started}"
    if first.site:
        yield f"Site: {first.site['name']}"
    yield ""
    yield from _table(plans, host)
    if first.notes:
        yield ""
        yield from (f"Note: {note}." for note in first.notes)
    yield ""
    yield from _environment(plans)
    if options.command:
        yield ""
        yield f"Command of each rank: {' '.join(map(_shown, options.command))}"


def _table(plans: Sequence[Launch], host: str) -> Iterator[str]:
    rows = [["Rank", "Node", "Local rank", "Cores", "GPU", "Threads"]]
    for plan in plans:
        task, names = plan.task, plan.gpus.names
        node = task.hosts[task.node_rank] if task.hosts else host
        gpu = ",".join(names) or "–"
        if names and task.local_size > 1:
            gpu = names[task.local_rank % len(names)]
        cores = spans(plan.binding.cores).replace(" ", "") or "none"
        if plan.binding.shared:
            cores += " (shared)"
        threads = plan.variables.get("OMP_NUM_THREADS", "yours")
        rows.append([str(task.rank), node, str(task.local_rank), cores, gpu, threads])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.ljust(width) if i in {1, 3} else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()
    if len(plans) < plans[0].task.size:
        yield f"… and {plans[0].task.size - len(plans)} more"


def _environment(plans: Sequence[Launch]) -> Iterator[str]:
    """Yield the variables that are equal on all ranks, then the other ones of the first rank."""
    seen = Counter(pair for plan in plans for pair in plan.variables.items())
    first = plans[0].variables
    alike = {name: value for name, value in first.items() if seen[name, value] == len(plans)}
    yield "Environment variables that all ranks get" if len(plans) > 1 else "Environment variables"
    yield from (f"  {name}={_shown(value)}" for name, value in sorted(alike.items()))
    own = {name: value for name, value in first.items() if name not in alike}
    if own:
        yield ""
        yield "Environment variables that differ between the ranks (here: the values of rank 0)"
        yield from (f"  {name}={_shown(value)}" for name, value in sorted(own.items()))


def _shown(text: str) -> str:
    from shlex import quote

    return quote(text) if len(text) <= 200 else f"{quote(text[:160])}… ({len(text)} characters)"
