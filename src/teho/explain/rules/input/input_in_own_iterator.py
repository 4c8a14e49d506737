"""A JAX program makes each batch itself between two steps, while the device could compute."""

from __future__ import annotations

from teho.explain.kinds import STARVED
from teho.explain.rule import Evidence, Findings, ProgramContext, Threshold
from teho.explain.where import LineTimes
from teho.model.program import MainProcess
from teho.model.stack import State

RANK = 195
SEVERITY = "critical, warning"
THRESHOLDS: dict[str, Threshold] = {}
MUTES = ("python_bound", "serial_program", "cores_unused", *STARVED)
MUTES_BECAUSE = "this finding says what to change, and how to use the cores"

_WAITS = frozenset((State.LOCK, State.PROCESS, State.THREADS))
"""Another thread or process makes the batches already."""


def judge(context: ProgramContext) -> Findings:
    """Find the time in the program's own generators, for a program that uses JAX."""
    for main in context.mains:
        share, lines = _in_iterators(main)
        idle_percent = _idle_percent(context, main)
        if idle_percent is None:
            continue
        # If the device or all cores are busy, loading ahead cannot make the program faster.
        most = min(share, idle_percent)
        if not context.is_loss(most / 100 * main.process.wall_s, main):
            continue
        yield context.lost(
            f"For {share:.0f} % of the time, the program made batches between the steps, instead "
            "of in the background.",
            share_percent=share,
            evidence=(
                Evidence("time in the function that makes the batches", share, "%"),
                Evidence("idle time of the device (without GPUs: of the cores)", idle_percent, "%"),
            ),
            action=(
                "Make the next batch in another process while the device computes: "
                "`grain.DataLoader(…, worker_count=1)`. Or make the next batch in a thread: create "
                "`pool = ThreadPoolExecutor(1)` once, and call `pool.submit(next, batches)` before "
                "each step."
            ),
            regain_percent=(0.0, most),
            lines=lines.slowest(),
        )
        return


def _in_iterators(main: MainProcess) -> tuple[float, LineTimes]:
    """Return the share of the time in the program's own generators, and their lines."""
    known = main.process.libraries.get("jax", {}).get("iterators", ())
    iterators = {(file, function) for file, function, _ in known}
    spent_s, lines = 0.0, LineTimes()
    for seen in main.process.stacks:
        if seen.state not in _WAITS and any(
            (frame.file, frame.function.rpartition(".")[2]) in iterators for frame in seen.frames
        ):
            spent_s += seen.wall_s
            lines.add(seen)
    return 100 * spent_s / main.process.wall_s, lines


def _idle_percent(context: ProgramContext, main: MainProcess) -> float | None:
    """Return the share of the time in which the device was idle; without GPUs, of all cores."""
    if context.gpus_beside(main):
        gpu = context.gpu_use(main)
        return None if gpu is None else gpu.idle_percent
    node = context.node_of(main)
    used = node.cpu_cores_used if node else None
    if node is None or not isinstance(used, float):
        return None
    return max(0.0, 100 * (1 - used / max(1, node.cores)))
