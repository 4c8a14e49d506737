"""`teho submit --trial`: a short job that shows whether the long job may go."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from teho.cli import say
from teho.errors import InputError
from teho.model.cluster import Cluster, Partition
from teho.model.plan import Answer, Option
from teho.model.request import Request
from teho.planner.place import in_words, seconds
from teho.units import format_duration

__all__ = ["check_trial", "say_if_untried", "short", "trial_option"]

_TIME_S = 300.0
"""Time limit of a trial. The program is ended earlier, after two minutes."""
_LONG_GPU_HOURS = 12.0
_WITHOUT = {
    "array": "leave out `--array`, and try one task",
    "after": "leave out `--after`: a trial starts at once",
    "requeue": "leave out `--requeue`: a trial runs once",
    "signal": "leave out `--signal`: a trial ends after two minutes",
    "local": "`teho run --window 10s --for 2min -- COMMAND` tries the program on this machine",
}


def check_trial(given: Mapping[str, Any], *, trial: bool) -> None:
    """Refuse options that a trial cannot have.

    Raises:
        InputError: one of them is given.
    """
    for name, instead in _WITHOUT.items():
        if trial and given.get(name):
            raise InputError(
                f"--trial cannot be used together with --{name}", "one of them", instead
            )


def short(request: Request) -> Request:
    """Return a request with the time limit of a trial."""
    return msgspec.structs.replace(request, time_s=_TIME_S)


def trial_option(
    request: Request, cluster: Cluster, answered: Callable[[Request], Answer]
) -> Option | None:
    """Return where the trial of a request runs; None: it fits nowhere.

    It runs in a test partition, or else in the partition with the shortest jobs. If the cluster
    refuses jobs as short as a trial, its time limit is longer.

    Args:
        request: what the program needs.
        cluster: the cluster of the job.
        answered: plans a request.
    """
    minima = {seconds(one.min_time) for one in cluster.partitions if one.min_time}
    for time_s in sorted({_TIME_S, *(one for one in minima if one > _TIME_S)}):
        found = answered(msgspec.structs.replace(request, time_s=time_s))
        if found.options:
            option = min(found.options, key=lambda one: _rank(_partition_of(one, cluster)))
            _say_where(option, cluster)
            return option
    return None


def _partition_of(option: Option, cluster: Cluster) -> Partition:
    place = (option.partition, option.label)
    return next(
        one
        for one in cluster.partitions
        if (one.name, one.title) == place and option.node_kind in one.kinds
    )


def _rank(partition: Partition) -> tuple[bool, bool, float]:
    longest = seconds(partition.max_time) if partition.max_time else float("inf")
    return partition.purpose != "test", partition.purpose != "production", longest


def _say_where(option: Option, cluster: Cluster) -> None:
    partition = _partition_of(option, cluster)
    where = f"the trial runs in {in_words(cluster, partition)}"
    limit = f"with a time limit of {format_duration(option.time_s)}"
    if partition.purpose == "test" or option.request.partition:
        say(f"{where}, {limit}")
        return
    has_names = cluster.dialect.partition != "never"
    other = "; `--partition NAME` chooses another partition" if has_names else ""
    say(f"{where}, {limit}: no test partition of {cluster.title} fits the request{other}")


def say_if_untried(option: Option, home: Path) -> None:
    """Suggest a trial of a long job with GPUs, if no run of its program is recorded."""
    hours = option.nodes * option.gpus_per_node * option.time_s / 3600
    program = _program(option.request.command)
    if hours <= _LONG_GPU_HOURS or not program:
        return
    from teho.store.index import newest_runs

    if any(run and _program(run.command) == program for _, run in newest_runs(home)):
        return
    say(
        f"this job requests {hours:,.0f} GPU-hours, and no run of {program} is recorded. "
        "To try the program for two minutes, add `--trial` to this command"
    )


def _program(command: tuple[str, ...]) -> str:
    """Return the name of a command's program: the first script, else the first word."""
    scripts = (word for word in command if word.endswith((".py", ".sh", ".R", ".jl", ".m")))
    word = next(scripts, command[0] if command else "")
    return word.rpartition("/")[2]
