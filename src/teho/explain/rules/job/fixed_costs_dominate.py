"""Importing and compiling take most of the time."""

from __future__ import annotations

from teho.explain.program_context import ProgramContext
from teho.explain.rule import Mutes
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.program import Doing, MainProcess
from teho.units import format_duration

__all__ = ["KIND", "MUTES", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "fixed_costs_dominate"
RANK = 290
SAYS = "importing and compiling take most of the time"
SEVERITY = "critical, warning"
THRESHOLDS = {
    "fixed_percent": Threshold(50.0, "%", "Teho's own choice: most of the time"),
    "wall_min_s": Threshold(
        30.0, "s", "Teho's own choice: in a shorter run nothing else can be expected"
    ),
    "compiles_max": Threshold(
        5.0, "times", "Teho's own choice: a few shapes, such as a last and smaller batch, are usual"
    ),
}
MUTES = Mutes(
    ("batch_small",),
    because="for most of the time it had no batches",
)
_OF_SEVERAL = frozenset(("", "(others)", "<lambda>"))
"""Names that stand for more than one function."""


def judge(context: ProgramContext) -> list[Finding] | Abstention:
    """Look at what is done once, however long the program works."""
    for main in context.mains:
        fixed_s = main.seconds(Doing.IMPORTING, Doing.COMPILING)
        share = main.percent(Doing.IMPORTING, Doing.COMPILING)
        is_short = main.process.wall_s < context.limit("wall_min_s")
        if is_short or share < context.limit("fixed_percent"):
            continue
        again = _compiled_again(main, context.limit("compiles_max"))
        same = (
            f"Give `{again.value}` arguments of the same shapes and types each time, by padding or "
            "without a last, smaller batch: it is compiled again for others. "
            if again
            else ""
        )
        return [
            context.lost(
                f"Importing and compiling took {share:.0f} % of the time.",
                share_percent=share,
                evidence=(
                    Evidence("importing", main.seconds(Doing.IMPORTING), "s"),
                    Evidence("compiling", main.seconds(Doing.COMPILING), "s"),
                    *([again] if again else []),
                ),
                judged_by=["fixed_percent", "wall_min_s", *(["compiles_max"] if again else [])],
                action=(
                    f"{same}Do more in one run: several parts of the work one after the other, in "
                    "one process. Keep what was compiled: `TORCHINDUCTOR_CACHE_DIR`, "
                    f"`JAX_COMPILATION_CACHE_DIR`. It took {format_duration(fixed_s)} each time."
                ),
                regain_percent=(0.0, share),
                lines=main.lines(Doing.IMPORTING, Doing.COMPILING),
            )
        ]
    return []


def _compiled_again(main: MainProcess, most: float) -> Evidence | None:
    """Name the function that JAX took longest to compile, if it did so more often than that."""
    functions = main.process.libraries.get("jax", {}).get("functions", {})
    own = {name: told for name, told in functions.items() if name not in _OF_SEVERAL}
    name = max(own, key=lambda one: own[one]["compile_s"], default="")
    if not name or own[name]["compiles"] <= most:
        return None
    return Evidence(f"compiled {own[name]['compiles']} times", name)
