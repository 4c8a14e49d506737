"""Python code itself takes most of the run time."""

from __future__ import annotations

import re

from teho.explain.activities import ActivityKind, activity_of
from teho.explain.rule import Evidence, Findings, ProgramContext, chosen
from teho.explain.where import LineTimes, doing_in
from teho.model.program import Doing, MainProcess

RANK = 300
SEVERITY = "critical, warning"
THRESHOLDS = {
    "python_percent": chosen(50.0, "%", "above this limit, Python code takes most of the run time")
}
NAMES_NO_CAUSE = True

_PACKAGES = re.compile(r"/(site|dist)-packages/")
_SOLVERS = re.compile(r"/scipy/(integrate|optimize)/")
"""Files that call a function of the program very often: it may work on whole arrays already."""


def judge(context: ProgramContext) -> Findings:
    """Check how long the program's own Python code ran.

    Python code of other packages cannot be compiled by the user. Known activities, such as logging,
    have a finding of their own.
    """
    for main, _ in context.losses(Doing.PYTHON):
        seconds, lines = _own_code(main)
        share = 100 * seconds / main.process.wall_s
        if share < context.limit("python_percent") or not context.is_loss(seconds, main):
            continue
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


def _own_code(main: MainProcess) -> tuple[float, LineTimes]:
    """Return the time in Python code outside of packages, in s, and its lines."""
    own_s, lines = 0.0, LineTimes()
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
            lines.add(seen)
    return own_s, lines
