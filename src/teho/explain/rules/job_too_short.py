"""The run was too short to judge how well it used what it had."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.rules._look import Look
from teho.model.finding import Abstention, Evidence, Finding, Severity, Threshold
from teho.model.run import Run
from teho.model.summary import Summary
from teho.units import format_duration

__all__ = ["KIND", "judge"]

KIND = "job_too_short"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Say whether means over this run mean anything."""
    look = Look(KIND, run, summary, thresholds)
    samples = max((_samples(look, node.name, node.covered_s) for node in summary.nodes), default=0)
    brief = summary.elapsed_s < look.limit("elapsed_min_s")
    if not brief and samples >= look.limit("samples_min"):
        return []
    what = (
        f"The program ran for {format_duration(summary.elapsed_s)}"
        if brief
        else f"Only {samples} samples were taken in {format_duration(summary.elapsed_s)}"
    )
    return look.outcome(
        [
            look.finding(
                Severity.REMARK,
                f"{what}, too little to judge how well it used what it had.",
                evidence=(
                    Evidence("wall time", summary.elapsed_s, "s"),
                    Evidence("samples", float(samples)),
                ),
                judged_by=["elapsed_min_s", "samples_min"],
                action=_action(look, brief=brief),
            )
        ]
    )


def _samples(look: Look, node_name: str, covered_s: float) -> int:
    return round(covered_s / look.period_s(node_name))


def _action(look: Look, *, brief: bool) -> str:
    if not brief:
        return "Sample more often: `teho run --every 1s -- CMD`."
    least = format_duration(look.limit("elapsed_min_s"))
    together = {
        "slurm": ": a loop in one script instead of an `sbatch` for each",
        "grid_engine": ": a loop in one script instead of a `qsub` for each",
    }
    return (
        f"To judge it, let it work for longer than {least}. If all your runs are this short, put "
        f"many into one job{together.get(look.scheduler or '', '')}."
    )
