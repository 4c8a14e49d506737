"""Python code itself takes most of the run time."""

from __future__ import annotations

from typing import NamedTuple

from teho.explain.activities import ActivityKind, activity_of
from teho.explain.options import lines_of_option
from teho.explain.program_context import in_lines
from teho.explain.rule import (
    Certainty,
    Evidence,
    Findings,
    Located,
    ProgramContext,
    Severity,
    chosen,
)
from teho.explain.where import LineTimes, doing_in
from teho.model.program import Doing, MainProcess
from teho.model.stack import is_library
from teho.patterns import lazy_pattern

RANK = 300
SEVERITY = "critical, warning, hint"
THRESHOLDS = {
    "python_percent": chosen(50.0, "%", "above this limit, Python code takes most of the run time"),
    "arrays_percent": chosen(
        50.0,
        "%",
        "if most of the time is in lines that already work on whole arrays, the advice to use "
        "NumPy does not fit",
    ),
    "events_percent": chosen(
        50.0,
        "%",
        "if most of the time is in a loop that takes one event after the other from a heap, the "
        "advice to use NumPy does not fit",
    ),
}
NAMES_NO_CAUSE = True

_PACKAGES = lazy_pattern(r"/(site|dist)-packages/")
_SOLVERS = lazy_pattern(r"/scipy/(integrate|optimize)/")
"""Files that call a function of the program very often: it may work on whole arrays already."""


def judge(context: ProgramContext) -> Findings:
    """Check how long the program's own Python code ran.

    Python code of other packages cannot be compiled by the user. Known activities, such as logging,
    have a finding of their own.
    """
    for main, _ in context.losses(Doing.PYTHON):
        seconds, arrays_s, events_s, lines = _own_code(main)
        share = 100 * seconds / main.process.wall_s
        if share < context.limit("python_percent") or not context.is_loss(seconds, main):
            continue
        if 100 * arrays_s >= context.limit("arrays_percent") * seconds:
            yield _hint(
                context,
                f"Python code and short calls of NumPy took {share:.0f} % of the time, on one "
                "core.",
                Evidence("time in Python code and short calls", share, "%"),
                Evidence("in lines that work on whole arrays", 100 * arrays_s / seconds, "%"),
                *in_lines(lines.slowest()),
                action="If the iterations of the loop do not depend on each other, compute several "
                "iterations with one call of NumPy. If each iteration needs the result of the "
                "one before, compile the loop with `numba.njit`.",
            )
            return
        if 100 * events_s >= context.limit("events_percent") * seconds:
            yield _hint(
                context,
                f"Python code took {share:.0f} % of the time, on one core: the program takes one "
                "event after the other from a heap.",
                Evidence("time in Python code", share, "%"),
                Evidence("in loops over the events of a heap", 100 * events_s / seconds, "%"),
                *in_lines(lines.slowest()),
                action="To use all cores, start several simulations at the same time, each in its "
                "own process: `multiprocessing.Pool().map(simulate, seeds)`. To make one "
                "simulation faster, run it with PyPy, or rewrite the loop for `numba.njit`.",
            )
            return
        yield context.lost(
            f"Python code took {share:.0f} % of the time, on one core.",
            share_percent=share,
            evidence=(Evidence("time in Python code", share, "%"),),
            action=(
                "In the slowest lines, use NumPy or PyTorch on whole arrays instead of single "
                "values. Or compile the functions of these lines with `numba.njit`, "
                "`torch.compile` or `jax.jit`."
            ),
            regain_percent=(0.0, share),
            lines=lines.slowest(),
        )
        return


def _hint(context: ProgramContext, sentence: str, *evidence: Evidence, action: str) -> Located:
    """Return what is said of Python code to which the usual advice does not fit."""
    return context.finding(
        Severity.HINT, sentence, evidence=evidence, action=action, mutes=False,
        certainty=Certainty.POSSIBLE,
    )  # fmt: skip


class _OwnCode(NamedTuple):
    """Python code outside of packages."""

    wall_s: float
    arrays_s: float
    """The part in lines that work on whole arrays."""
    events_s: float
    """The part in loops that take one event after the other from a heap."""
    lines: LineTimes


def _own_code(main: MainProcess) -> _OwnCode:
    """Return the time in Python code outside of packages, and its lines."""
    own_s, arrays_s, events_s, lines = 0.0, 0.0, 0.0, LineTimes()
    on_arrays = lines_of_option(main, "whole_arrays")
    of_events = lines_of_option(main, "events_in_turn")
    for seen in main.process.stacks:
        if doing_in(main.process, seen) is not Doing.PYTHON or not seen.frames:
            continue
        known = activity_of(seen)
        if _PACKAGES.search(seen.frames[0].file):
            continue
        if any(_SOLVERS.search(frame.file) for frame in seen.frames):
            continue
        if known is None or known.kind is not ActivityKind.OVERHEAD or known.least_percent:
            own_s += seen.wall_s
            arrays_s += seen.wall_s if seen.frames[0] in on_arrays else 0.0
            innermost = next((one for one in seen.frames if not is_library(one.file)), None)
            events_s += seen.wall_s if innermost in of_events else 0.0
            lines.add(seen)
    return _OwnCode(own_s, arrays_s, events_s, lines)
