"""Python threads of the program could run only one at a time."""

from __future__ import annotations

import re

from teho.explain.rule import Evidence, Findings, ProgramContext, Threshold, chosen
from teho.explain.where import doing_of
from teho.model.program import Doing, MainProcess
from teho.model.stack import is_library

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
}
MUTES = ("serial_program", "cores_unused", "python_bound")
MUTES_BECAUSE = "this finding says why only one core was busy"

_AWAITED = re.compile(
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
        if used is None or not 0.5 <= used <= context.limit("one_core_max"):
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


def _waited_s(main: MainProcess) -> float:
    """Return the time in which the main thread waited for threads that the program started."""
    waited_s = 0.0
    for seen in main.process.stacks:
        if seen.state.name not in {"THREADS", "LOCK", "WAITING", "CORE"}:
            continue
        inner = next((frame for frame in seen.own_frames if is_library(frame.file)), None)
        is_loading = doing_of(seen) is Doing.LOADING
        if inner is not None and not is_loading and _AWAITED.search(inner.file):
            waited_s += seen.wall_s
    return waited_s
