"""Pools of worker processes that a program makes again and again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from teho.explain.options import options_of_rule
from teho.explain.program_context import ProgramContext
from teho.explain.where import LineTimes, doing_in, place_of
from teho.model.program import Doing, MainProcess
from teho.model.stack import Frame, is_library
from teho.model.watched import WatchedProcess
from teho.patterns import lazy_pattern

__all__ = [
    "POOL_STARTS",
    "PoolRestarts",
    "WorkersReplaced",
    "are_commands",
    "lost_restarts",
    "replaced_workers",
]

POOL_STARTS = frozenset(("imported_again", "processes_started"))
"""Names in activities.toml of what a new pool does."""
_WORKER = lazy_pattern(
    r"multiprocess(ing)?/pool\.py:worker$|concurrent/futures/process\.py:_process_worker$"
)
_SPAWNED = lazy_pattern(r"multiprocess(ing)?/spawn\.py:(_main|spawn_main|prepare)$")
"""Functions of a process that began with a new Python: it has to import all modules again."""
_OF_PROGRAM = lazy_pattern(
    _SPAWNED.pattern + r"|multiprocess(ing)?/(process\.py:.*_bootstrap|forkserver\.py:main)$"
    r"|/loky/(process_executor\.py:_process_worker|backend/popen_\w+\.py:main)$"
)
"""Functions at the bottom of a process that the program started as a part of itself."""
_WAITS = lazy_pattern(r"multiprocess(ing)?/pool\.py:|concurrent/futures/(_base|process)\.py:")
_MAKES = lazy_pattern(r"\b(Pool|ProcessPoolExecutor)\(")
_LEAST_POOLS = 4
"""A program may need a few pools for different tasks."""
_OVERLAP = 0.2
"""The workers of a pool may end while those of the next pool begin: for this part of their time."""
_STARTS = frozenset((Doing.IMPORTING, Doing.ENDING))
_LEAST_REPLACED = 4
_STAGGERED_PART = 1 / 3
"""If a pool replaces its workers, a new one begins while the others work. If the program makes a
new pool, all workers of the pool before have ended. Several workers may end at the same time."""
_TASKS = lazy_pattern(r"=\s*(\d+)$")


class PoolRestarts(NamedTuple):
    """Pools of worker processes, one after the other."""

    pools: int
    workers: int
    """Number of workers of most pools."""
    import_s: float
    """Time for which the workers of all pools but the first imported modules and ended; the workers
    of one pool count once."""
    unseen_s: float
    """The same for the time before the first sample of the workers, when Python starts."""
    made: Frame | None
    """The line that makes a pool; None: it was not seen."""
    lines: tuple[tuple[Frame, float], ...]
    """The program's lines that waited for the pools, with the time of each in s, longest first."""


class WorkersReplaced(NamedTuple):
    """Worker processes of a pool that each end after a few tasks."""

    option: Frame
    """The place of the option, and its text: `maxtasksperchild=1`."""
    tasks: int | None
    """Number of tasks after which a worker ends; None: the source does not say it."""
    advice: str
    replaced: int
    """Number of workers that began after the first ones."""
    import_s: float
    """Time for which the later workers imported modules and ended, for each worker at a time."""
    unseen_s: float
    """The same for the time before the first sample of these workers, when Python starts."""
    lines: tuple[tuple[Frame, float], ...]
    """The program's lines that waited for the pool, with the time of each in s, longest first."""


def replaced_workers(context: ProgramContext, main: MainProcess) -> WorkersReplaced | None:
    """Return the workers that a pool replaced after a few tasks, if this took enough time.

    Of the time between the begin of a worker and its first sample, half counts.
    """
    known = next(options_of_rule(main, "pool_restarted"), None)
    workers = sorted(_spawned(main), key=lambda one: one.began_s)
    if known is None or len(workers) <= _LEAST_REPLACED:
        return None
    advice, option = known
    tasks = _TASKS.search(option.text)
    span_s = max(one.until_s for one in workers) - workers[0].began_s
    at_once = max(1.0, sum(one.wall_s for one in workers) / max(span_s, 1e-9))
    later = workers[round(at_once) :]
    is_each = tasks is not None and int(tasks[1]) == 1
    is_staggered = sum(_has_older(one, workers) for one in later) >= _STAGGERED_PART * len(later)
    if len(later) < _LEAST_REPLACED or not (is_each or is_staggered):
        return None
    found = WorkersReplaced(
        option,
        int(tasks[1]) if tasks else None,
        advice,
        len(later),
        sum(map(_import_s, later)) / at_once,
        sum(one.not_sampled_s for one in later) / at_once,
        _waiting_lines(main),
    )
    return found if context.is_loss(found.import_s + found.unseen_s / 2, main) else None


def _has_older(worker: WatchedProcess, workers: Sequence[WatchedProcess]) -> bool:
    """Return whether another worker was in the middle of its life when a worker began."""
    return any(
        one.began_s + _OVERLAP * one.wall_s < worker.began_s < one.until_s - _OVERLAP * one.wall_s
        for one in workers
    )


def lost_restarts(context: ProgramContext, main: MainProcess) -> PoolRestarts | None:
    """Return the pools of a process whose start took enough time to report it; None: none did.

    Of the time between the begin of a worker and its first sample, half counts.
    """
    found = _restarts(main) if replaced_workers(context, main) is None else None
    if found is None or not context.is_loss(found.import_s + found.unseen_s / 2, main):
        return None
    return found


def _restarts(main: MainProcess) -> PoolRestarts | None:
    """Return the pools that a process made, one after the other; None: there are fewer pools.

    Only workers count that began with a new Python (start methods `spawn` and `forkserver`).
    """
    pools = _generations(_spawned(main))
    if len(pools) < _LEAST_POOLS:
        return None
    again = pools[1:]
    made: Counter[Frame] = Counter()
    for seen in main.process.stacks:
        for frame in seen.own_frames:
            if not is_library(frame.file) and _MAKES.search(frame.text):
                made[frame] += 1
                break
    return PoolRestarts(
        len(pools),
        Counter(map(len, pools)).most_common(1)[0][0],
        sum(fmean(map(_import_s, pool)) for pool in again),
        sum(fmean(one.not_sampled_s for one in pool) for pool in again),
        made.most_common(1)[0][0] if made else None,
        _waiting_lines(main),
    )


def _waiting_lines(main: MainProcess) -> tuple[tuple[Frame, float], ...]:
    """Return the lines that waited for a pool, with the time of each in s, longest first."""
    lines = LineTimes()
    for seen in main.process.stacks:
        if any(_WAITS.search(place_of(frame)) for frame in seen.frames):
            lines.add(seen)
    return lines.slowest()


def are_commands(main: MainProcess) -> bool:
    """Return whether the child processes are commands, and no workers of `multiprocessing`."""
    return bool(main.children) and not any(_has(one, _OF_PROGRAM) for one in main.children)


def _spawned(main: MainProcess) -> list[WatchedProcess]:
    """Return the processes that began with a new Python; empty if none is a worker of a pool."""
    found = [one for one in main.children if _has(one, _SPAWNED)]
    return found if any(_has(one, _WORKER) for one in found) else []


def _generations(workers: Sequence[WatchedProcess]) -> list[list[WatchedProcess]]:
    """Return the workers of each pool: a pool begins when those before have almost ended."""
    found: list[list[WatchedProcess]] = []
    for one in sorted(workers, key=lambda one: one.began_s):
        last = found[-1] if found else []
        until_s = max((other.until_s for other in last), default=0.0)
        life_s = max((other.wall_s for other in last), default=0.0)
        if not last or one.began_s >= until_s - _OVERLAP * life_s:
            found.append([one])
        else:
            last.append(one)
    return found


def _import_s(process: WatchedProcess) -> float:
    return sum(seen.wall_s for seen in process.stacks if doing_in(process, seen) in _STARTS)


def _has(process: WatchedProcess, functions: re.Pattern[str]) -> bool:
    return any(
        functions.search(place_of(frame)) for seen in process.stacks for frame in seen.own_frames
    )
