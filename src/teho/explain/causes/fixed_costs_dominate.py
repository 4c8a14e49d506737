"""Importing and compiling take most of the time."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.causes._watch import Watch
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.program import Doing
from teho.model.run import Run
from teho.model.summary import Summary
from teho.units import format_duration

__all__ = ["KIND", "judge"]

KIND = "fixed_costs_dominate"


def judge(
    run: Run, summary: Summary, thresholds: Mapping[str, Threshold]
) -> list[Finding] | Abstention:
    """Look at what is done once, however long the program works."""
    watch = Watch(KIND, run, summary, thresholds)
    for main in watch.mains:
        fixed_s = main.seconds(Doing.IMPORTING, Doing.COMPILING)
        share = main.percent(Doing.IMPORTING, Doing.COMPILING)
        if share < watch.limit("fixed_percent") or main.process.wall_s < watch.limit("wall_min_s"):
            continue
        return [
            watch.lost(
                f"Importing and compiling took {share:.0f} % of the time.",
                share_percent=share,
                evidence=(
                    Evidence("importing", main.seconds(Doing.IMPORTING), "s"),
                    Evidence("compiling", main.seconds(Doing.COMPILING), "s"),
                ),
                judged_by=["fixed_percent", "wall_min_s"],
                action=(
                    "Do more in one run: several parts of the work one after the other, in one "
                    "process. Keep what was compiled: `TORCHINDUCTOR_CACHE_DIR`, "
                    f"`JAX_COMPILATION_CACHE_DIR`. It took {format_duration(fixed_s)} each time."
                ),
                regain_percent=(0.0, share),
            )
        ]
    return []
