"""The program launches kernels too slowly, so the GPU waits for the next kernel."""

from __future__ import annotations

from teho.explain.activities import ActivityKind, activity_of
from teho.explain.kinds import DEEP_GPU
from teho.explain.rule import Evidence, Findings, ProgramContext, Threshold, chosen
from teho.explain.where import BACKWARD, LineTimes, doing_in, place_of
from teho.explain.wording import FEWER_KERNELS
from teho.model.program import Doing, MainProcess
from teho.model.stack import Seen, State, is_library
from teho.patterns import lazy_pattern

RANK = 245
SEVERITY = "critical, warning"
THRESHOLDS = {
    "starting_percent": chosen(
        50.0, "%", "above this limit, Python code and launches of kernels take most of the run time"
    ),
    "busy_percent": Threshold(
        50.0, "%", "as in the rule gpu_low_use: below this limit, the GPU has too little work"
    ),
}
MUTES = (*DEEP_GPU, "gpu_launch_bound", "gpu_low_use", "python_bound", "batch_small")
MUTES_BECAUSE = "this finding says why the GPU had little work, and what the main thread did"

_LIBRARIES = lazy_pattern(r"/(torch|jax|tensorflow|keras|cupy|flax|optax|equinox|haiku)/")
_CALLS = lazy_pattern(r"\b(torch|nn|F|jnp|jax|lax|tf|cp|cupy)\.[\w.]+\(|\b\w+\.(backward|step)\(")
"""Calls of a library that computes on GPUs, in a line of the program."""
_IN_BACKWARD = frozenset((Doing.PYTHON, Doing.NATIVE, Doing.THREADS, Doing.LOCK))


def judge(context: ProgramContext) -> Findings:
    """Find a program whose main thread always launches kernels, on a GPU that is mostly idle."""
    lacks_a_gpu = False
    for main in context.mains if context.gpus else ():
        gpu = context.gpu_use(main)
        # First, because the stacks of thousands of ranks take seconds.
        if gpu is not None and not 0 < gpu.busy_percent < context.limit("busy_percent"):
            continue
        seconds, lines = _starting(main)
        share = 100 * seconds / context.work_s(main)
        if share < context.limit("starting_percent") or not context.is_loss(seconds, main):
            continue
        if gpu is None:
            lacks_a_gpu = True
            continue
        context.forget_lacks()
        yield context.lost(
            f"The GPU was busy only {gpu.busy_percent:.0f} % of the time{gpu.during}, because "
            "the program gave the GPU work too slowly. Python code, which also launches the "
            f"kernels (functions on the GPU), took {share:.0f} % of the time.",
            share_percent=gpu.idle_percent,
            evidence=(
                Evidence("time in Python code and launches of kernels", share, "%"),
                gpu.evidence,
            ),
            action=(
                "Do more work in each call: use a larger batch, or one operation on a whole "
                f"tensor instead of a loop. {FEWER_KERNELS}"
            ),
            regain_percent=(0.0, min(share, gpu.idle_percent)),
            lines=lines.slowest(),
        )
        return
    if not lacks_a_gpu:
        context.forget_lacks()


def _starting(main: MainProcess) -> tuple[float, LineTimes]:
    """Return the time in which the main thread prepared and started kernels [s], and its lines."""
    total_s, lines = 0.0, LineTimes()
    is_elsewhere = main.library.get("devices") == ["cpu"]
    for seen in () if is_elsewhere else main.process.stacks:
        if _starts_kernels(main, seen):
            total_s += seen.wall_s
            lines.add(seen)
    return total_s, lines


def _starts_kernels(main: MainProcess, seen: Seen) -> bool:
    """Return whether a stack prepares or starts kernels, as far as it shows.

    In Python below or in a function of such a library: a call that starts a kernel takes about
    10 µs, so it counts as Python. In a backward pass, another thread starts them.
    """
    if not seen.frames:
        return False
    doing = doing_in(main.process, seen)
    if any(BACKWARD.search(place_of(frame)) for frame in seen.own_frames):
        return doing in _IN_BACKWARD
    if seen.state is not State.PYTHON or doing is not Doing.PYTHON:
        return False
    known = activity_of(seen)
    if known is not None and known.kind is ActivityKind.OVERHEAD:
        return False
    innermost = seen.frames[0]
    if is_library(innermost.file):
        return _LIBRARIES.search(innermost.file) is not None
    below = any(_LIBRARIES.search(frame.file) for frame in seen.frames)
    return below or _CALLS.search(innermost.text) is not None
