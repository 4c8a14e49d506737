"""The main thread runs Python code most of the time."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.causes._watch import Watch
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.program import Doing
from teho.model.run import Run
from teho.model.summary import Summary

__all__ = ["KIND", "judge"]

KIND = "python_bound"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Look at how long Python code ran."""
    watch = Watch(KIND, run, summary, thresholds)
    for main in watch.mains:
        share = main.percent(Doing.PYTHON)
        if share < watch.limit("python_percent") or not watch.is_loss(
            main.seconds(Doing.PYTHON), main
        ):
            continue
        return [
            watch.lost(
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
