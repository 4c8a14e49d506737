"""Python code itself takes most of the run time."""

from __future__ import annotations

from teho.explain.rule import Evidence, Findings, ProgramContext, chosen
from teho.model.program import Doing

RANK = 300
SEVERITY = "critical, warning"
THRESHOLDS = {
    "python_percent": chosen(50.0, "%", "above this limit, Python code takes most of the run time")
}


def judge(context: ProgramContext) -> Findings:
    """Check how long Python code ran."""
    for main, share in context.losses(Doing.PYTHON):
        if share < context.limit("python_percent"):
            continue
        yield context.lost(
            f"Python code took {share:.0f} % of the time, on one core.",
            share_percent=share,
            evidence=(Evidence("Python", share, "%"),),
            action=(
                "In the lines below, use NumPy or PyTorch on whole arrays instead of single "
                "values. Or compile the lines with `numba.njit`, `torch.compile` or `jax.jit`."
            ),
            regain_percent=(0.0, share),
            lines=main.lines(Doing.PYTHON),
        )
        return
