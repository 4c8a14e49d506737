"""Python threads of the program could run only one at a time.

The reason is the interpreter lock, or a lock of the program: a thread reads, decompresses or
computes in the block of `with lock:`. Such work could run in several threads at the same time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from teho.explain.options import lines_of_option, options_of_rule
from teho.explain.rule import (
    Evidence,
    Findings,
    Located,
    ProgramContext,
    Threshold,
    chosen,
)
from teho.explain.where import doing_of
from teho.model.program import Doing, MainProcess
from teho.model.stack import Frame, Seen, is_library
from teho.patterns import lazy_pattern

RANK = 295
SEVERITY = "critical, warning"
THRESHOLDS = {
    "threads_percent": chosen(
        30.0, "%", "above this limit, the threads do a large part of the program's work"
    ),
    "one_core_max": Threshold(
        1.3,
        "cores",
        "if a job uses at most 1.01 cores, Jobstats (a job report tool) calls the job serial; "
        "this threshold is higher, because threads of libraries use some CPU time too",
    ),
    "lock_part": chosen(
        0.5,
        "of the time",
        "if a thread holds a lock of the program for at least half of the time, the other threads "
        "mostly wait for this lock",
    ),
    "lock_cores_percent": chosen(
        75.0, "%", "if three quarters of the cores are busy, a lock costs little time"
    ),
}
MUTES = ("serial_program", "cores_unused", "python_bound")
MUTES_BECAUSE = "this finding says why only one core was busy"

_LEAST_USED = 0.5
"""With fewer cores in use, the threads mostly wait for something else."""
_AWAITED = lazy_pattern(
    r"/(concurrent/futures/(thread|_base)|threading|multiprocessing/pool|asyncio/\w+)\.py$"
)
"""Files of Python's library in which a program waits for its own threads."""


def judge(context: ProgramContext) -> Findings:
    """Find a main thread that waits for Python threads while about one core is busy.

    Python's interpreter lock lets one thread of a process execute Python at a time. Calls into
    native code may run at the same time; then more cores are busy.
    """
    for main in context.mains[:1]:
        waited_s = _waited_s(main)
        share = 100 * waited_s / main.process.wall_s
        node = context.node_of(main)
        if node is None or node.cores < 2 or share < context.limit("threads_percent"):
            continue
        if not context.is_loss(waited_s, main) or main.children:
            continue
        used = context.figure(node, "CPU cores used", node.cpu_cores_used)
        if used is None or used < _LEAST_USED:
            continue
        held = _held(main)
        is_held = held is not None and held.wall_s >= context.limit("lock_part") * waited_s
        if held is not None and is_held and context.is_loss(held.wall_s, main):
            if 100 * used <= context.limit("lock_cores_percent") * node.cores:
                yield _of_lock(context, main, held, used / node.cores, node.cores)
            return
        if used > context.limit("one_core_max"):
            continue
        best = 100 * (1 - 1 / node.cores) * share / 100
        yield context.lost(
            f"Python threads took turns for {share:.0f} % of the time, on only one of {node.cores} "
            "cores: Python executes only one thread of a process at a time.",
            share_percent=share,
            evidence=(
                Evidence("time that the main thread waited for the program's threads", share, "%"),
                Evidence("cores used, mean", used, "cores"),
                Evidence("cores", float(node.cores), "cores"),
            ),
            action=(
                "Use processes instead of threads: `ProcessPoolExecutor` instead of "
                "`ThreadPoolExecutor`, `multiprocessing.Pool` instead of `ThreadPool`. Or use "
                "functions of NumPy on whole arrays, which can run in several threads."
            ),
            regain_percent=(best / 2, best),
            lines=main.lines(Doing.THREADS, Doing.LOCK),
        )
        return


class _Held(NamedTuple):
    """A lock of the program that a thread holds while it works."""

    at: Frame
    advice: str
    wall_s: float
    lines: tuple[tuple[Frame, float], ...]
    """The lines in the block, with the time of each in s, longest first."""


def _held(main: MainProcess) -> _Held | None:
    """Return the lock that threads held while the main thread waited for them; None: there is none.

    The source shows the blocks of locks. If there are several, all their time counts.
    """
    known = next(options_of_rule(main, "threads_in_turn"), None)
    inside = lines_of_option(main, "lock_held")
    if known is None:
        return None
    lines: defaultdict[Frame, float] = defaultdict(float)
    for seen in _awaiting(main):
        line = next((frame for frame in seen.frames if frame in inside), None)
        if line is not None:
            lines[line] += seen.wall_s
    advice, at = known
    longest = sorted(lines.items(), key=lambda one: -one[1])
    return _Held(at, advice, sum(lines.values()), tuple(longest))


def _of_lock(
    context: ProgramContext, main: MainProcess, held: _Held, busy: float, cores: int
) -> Located:
    """Return the finding about a lock.

    Args:
        context: the run.
        main: the process.
        held: the lock.
        busy: the part of the cores that was busy.
        cores: the number of cores.
    """
    share = 100 * held.wall_s / main.process.wall_s
    best = min((1 - 1 / cores) * share, 100 * (1 - busy))
    work = held.lines[0][0]
    return context.lost(
        f"One thread at a time held the lock of `{held.at.short_text}` at {held.at.short_place}, "
        f"for {share:.0f} % of the run time, mostly for `{work.short_text}` at "
        f"{work.short_place}. The other threads waited for the lock.",
        share_percent=share,
        evidence=(
            Evidence("time in which a thread held the lock", share, "%"),
            Evidence("cores", float(cores), "cores"),
        ),
        action=(
            f"Move `{work.short_text}` at {work.short_place}, with the lines that it needs, out of "
            f"the block. {held.advice}"
        ),
        judged_by=["lock_part", "lock_cores_percent"],
        regain_percent=(best / 2, best),
        lines=held.lines,
    )


def _waited_s(main: MainProcess) -> float:
    """Return the time in which the main thread waited for threads that the program started."""
    return sum(seen.wall_s for seen in _awaiting(main))


def _awaiting(main: MainProcess) -> Iterator[Seen]:
    """Yield the stacks in which the main thread waited for threads that the program started."""
    for seen in main.process.stacks:
        if seen.state.name not in {"THREADS", "LOCK", "WAITING", "CORE"}:
            continue
        inner = next((frame for frame in seen.own_frames if is_library(frame.file)), None)
        is_loading = doing_of(seen) is Doing.LOADING
        if inner is not None and not is_loading and _AWAITED.search(inner.file):
            yield seen
