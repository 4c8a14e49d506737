"""The main thread runs Python code most of the time."""

from __future__ import annotations

from teho.explain.program_context import ProgramContext
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.program import Doing

__all__ = ["KIND", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "python_bound"
RANK = 300
SAYS = "Python code itself takes most of the time"
SEVERITY = "critical, warning"
THRESHOLDS = {
    "python_percent": Threshold(50.0, "%", "Teho's own choice: most of the time"),
}


def judge(context: ProgramContext) -> list[Finding] | Abstention:
    """Look at how long Python code ran."""
    for main in context.mains:
        share = main.percent(Doing.PYTHON)
        if share < context.limit("python_percent") or not context.is_loss(
            main.seconds(Doing.PYTHON), main
        ):
            continue
        return [
            context.lost(
                f"Python code took {share:.0f} % of the time, on one core.",
                share_percent=share,
                evidence=(Evidence("Python", share, "%"),),
                judged_by=["python_percent"],
                action=(
                    "Let NumPy or PyTorch work on whole arrays where these lines work on single "
                    "values; or compile them, with `numba.njit`, `torch.compile` or `jax.jit`."
                ),
                regain_percent=(0.0, share),
                lines=main.lines(Doing.PYTHON),
            )
        ]
    return []
