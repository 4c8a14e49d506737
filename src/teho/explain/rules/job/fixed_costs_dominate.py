"""Importing and compiling take most of the time."""

from __future__ import annotations

from teho.explain.compiles import compiled_again, longest_compile_s, unfinished_compile_s
from teho.explain.rule import Evidence, Findings, ProgramContext, chosen
from teho.model.program import Doing
from teho.units import format_duration

RANK = 290
SEVERITY = "critical, warning"
THRESHOLDS = {
    "fixed_percent": chosen(
        50.0, "%", "above this limit, importing and compiling take most of the run time"
    ),
    "wall_min_s": chosen(
        30.0,
        "s",
        "in a shorter run, it is normal that importing and compiling take most of the time",
    ),
    "compiles_max": chosen(
        5.0,
        "times",
        "a function is usually compiled for only a few shapes of its arguments, for example for "
        "a smaller last batch",
    ),
}
MUTES = ("batch_small",)
MUTES_BECAUSE = "importing and compiling took most of the time; a larger batch does not change this"

_UNROLLED = (
    "If a function has a Python loop, JAX compiles each pass of the loop: use `jax.lax.scan` or "
    "`jax.lax.fori_loop` instead. "
)


def judge(context: ProgramContext) -> Findings:
    """Compare the time of importing and compiling with the whole time."""
    for main in context.mains:
        fixed_s = main.seconds(Doing.IMPORTING, Doing.COMPILING)
        share = main.percent(Doing.IMPORTING, Doing.COMPILING)
        is_short = main.process.wall_s < context.limit("wall_min_s")
        if is_short or share < context.limit("fixed_percent"):
            continue
        again = compiled_again(main, context.limit("compiles_max"))
        same_shapes = (
            f"Call `{again.value}` with arguments of the same shapes and types each time: with new "
            "shapes, JAX compiles the function again. Pad the last, smaller batch, or drop it. "
            if again
            else ""
        )
        # One function that takes this long to compile has a large program, as of an unrolled loop.
        longest_s = max(longest_compile_s(main), unfinished_compile_s(main))
        is_large = not again and longest_s >= fixed_s / 2
        yield context.lost(
            f"Importing and compiling took {share:.0f} % of the time.",
            share_percent=share,
            evidence=(
                Evidence("importing", main.seconds(Doing.IMPORTING), "s"),
                Evidence("compiling", main.seconds(Doing.COMPILING), "s"),
                *([again] if again else []),
            ),
            judged_by=["fixed_percent", "wall_min_s", *(["compiles_max"] if again else [])],
            action=(
                f"{same_shapes}{_UNROLLED if is_large else ''}"
                "Do several parts of the work in one run, one after the other in one process. "
                "Store the compiled code for the next run, with the variable "
                "`TORCHINDUCTOR_CACHE_DIR` or `JAX_COMPILATION_CACHE_DIR`. Importing and "
                f"compiling took {format_duration(fixed_s)} in this run."
            ),
            regain_percent=(0.0, share),
            lines=main.lines(Doing.IMPORTING, Doing.COMPILING),
        )
        return
