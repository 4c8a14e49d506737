"""Pools of worker processes that a program makes again and again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from teho.explain.program_context import ProgramContext
from teho.explain.where import LineTimes, doing_in, place_of
from teho.model.program import Doing, MainProcess
from teho.model.stack import Frame, is_library
from teho.model.watched import WatchedProcess

__all__ = ["POOL_STARTS", "PoolRestarts", "lost_restarts"]

POOL_STARTS = frozenset(("imported_again", "processes_started"))
"""Names in activities.toml of what a new pool does."""
_WORKER = re.compile(
    r"multiprocess(ing)?/pool\.py:worker$|concurrent/futures/process\.py:_process_worker$"
)
_SPAWNED = re.compile(r"multiprocess(ing)?/spawn\.py:(_main|spawn_main|prepare)$")
"""Functions of a process that began with a new Python: it has to import all modules again."""
_WAITS = re.compile(r"multiprocess(ing)?/pool\.py:|concurrent/futures/(_base|process)\.py:")
_MAKES = re.compile(r"\b(Pool|ProcessPoolExecutor)\(")
_LEAST_POOLS = 4
"""A program may need a few pools for different tasks."""
_OVERLAP = 0.2
"""The workers of a pool may end while those of the next pool begin: for this part of their time."""
_STARTS = frozenset((Doing.IMPORTING, Doing.ENDING))


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


def lost_restarts(context: ProgramContext, main: MainProcess) -> PoolRestarts | None:
    """Return the pools of a process whose start took enough time to report it; None: none did.

    Of the time between the begin of a worker and its first sample, half counts.
    """
    found = _restarts(main)
    if found is None or not context.is_loss(found.import_s + found.unseen_s / 2, main):
        return None
    return found


def _restarts(main: MainProcess) -> PoolRestarts | None:
    """Return the pools that a process made, one after the other; None: there are fewer pools.

    Only workers count that began with a new Python (start methods `spawn` and `forkserver`).
    """
    pools = _generations([one for one in main.children if _has(one, _SPAWNED)])
    if len(pools) < _LEAST_POOLS or not any(_has(one, _WORKER) for pool in pools for one in pool):
        return None
    again = pools[1:]
    lines = LineTimes()
    made: Counter[Frame] = Counter()
    for seen in main.process.stacks:
        if any(_WAITS.search(place_of(frame)) for frame in seen.frames):
            lines.add(seen)
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
        lines.slowest(),
    )


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
