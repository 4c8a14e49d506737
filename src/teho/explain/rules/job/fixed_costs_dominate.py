"""Importing and compiling take most of the time."""

from __future__ import annotations

from typing import NamedTuple

from teho.explain.compiles import (
    compiled_again,
    longest_compile,
    traced_line,
    unfinished_compile_s,
    uses_jax,
)
from teho.explain.options import option_of_rule
from teho.explain.rule import Evidence, Findings, ProgramContext, chosen
from teho.model.program import Doing, MainProcess
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
    "large_compile_s": chosen(
        5.0,
        "s",
        "JAX usually compiles a function in less time; a function that takes longer is reported "
        "even if the run is short",
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

_COMPILED_AGAIN = "jax_compiled_again"
"""Name in activities.toml."""
_UNROLLED = (
    "If a function has a Python loop, JAX unrolls the loop and compiles each pass of the loop: use "
    "`jax.lax.scan` or `jax.lax.fori_loop` instead. "
)


class _Large(NamedTuple):
    """A function whose compilation took most of the time of importing and compiling."""

    name: str
    """Empty if it is not known."""
    compile_s: float
    has_ended: bool


def judge(context: ProgramContext) -> Findings:
    """Compare the time of importing and compiling with the whole time."""
    for main in context.mains:
        fixed_s = main.seconds(Doing.IMPORTING, Doing.COMPILING)
        share = main.percent(Doing.IMPORTING, Doing.COMPILING)
        again = compiled_again(main, context.limit("compiles_max"))
        large = None if again else _large(main, fixed_s)
        is_short = main.process.wall_s < context.limit("wall_min_s")
        # Tracing takes long if JAX unrolls a loop. Otherwise, the compiler itself takes long, once.
        is_slow = (
            large is not None
            and large.compile_s >= context.limit("large_compile_s")
            and traced_line(main) is not None
        )
        if (is_short and not is_slow) or share < context.limit("fixed_percent"):
            continue
        judged_by = ["fixed_percent", "large_compile_s" if is_short else "wall_min_s"]
        judged_by += ["compiles_max"] if again else []
        yield context.lost(
            _sentence(main, share, large),
            share_percent=share,
            evidence=(
                Evidence("time spent on importing", main.seconds(Doing.IMPORTING), "s"),
                Evidence("time spent on compiling", main.seconds(Doing.COMPILING), "s"),
                *([again[1]] if again else []),
            ),
            judged_by=judged_by,
            action=f"{_first(main, again[0] if again else '', large)}{_rest(main, large, fixed_s)}",
            regain_percent=(0.0, share),
            lines=main.lines(Doing.IMPORTING, Doing.COMPILING),
        )
        return


def _large(main: MainProcess, fixed_s: float) -> _Large | None:
    """Return the function that took most of the time; None if several took it.

    It has a large program, as of an unrolled loop.
    """
    name, longest_s = longest_compile(main)
    large = _Large(name, longest_s, has_ended=True)
    unfinished_s = unfinished_compile_s(main)
    if unfinished_s > longest_s:
        large = _Large("", unfinished_s, has_ended=False)
    return large if large.compile_s >= fixed_s / 2 > 0 else None


def _sentence(main: MainProcess, share: float, large: _Large | None) -> str:
    if large is None:
        return f"Importing and compiling took {share:.0f} % of the time."
    name = f"`{large.name}`" if large.name else "one function"
    end = "" if large.has_ended else ", until the end of the run"
    return (
        f"Compiling took {main.percent(Doing.COMPILING):.0f} % of the time: JAX compiled {name} "
        f"for {format_duration(large.compile_s)}{end}."
    )


def _first(main: MainProcess, again: str, large: _Large | None) -> str:
    if again:
        option = option_of_rule(main, "known_activity", _COMPILED_AGAIN)
        if option is not None:
            return f"{option} "
        return (
            f"Call `{again}` with arguments of the same shapes and types each time: with new "
            "shapes, JAX compiles the function again. If the shapes change, pad the arrays to one "
            "size or to a few sizes. "
        )
    if large is None:
        return ""
    line = traced_line(main)
    return f"{_UNROLLED}Look at {line.short_place} first. " if line else ""


def _rest(main: MainProcess, large: _Large | None, fixed_s: float) -> str:
    several = (
        "If you start the program many times, let one start do all the work: each start imports "
        "and compiles again. "
    )
    return (
        f"{'' if large else several}Store the compiled code for the next run: set the variable "
        f"{_variables(main, large)} to a folder. Importing and compiling took "
        f"{format_duration(fixed_s)} in this run."
    )


def _variables(main: MainProcess, large: _Large | None) -> str:
    """Return the variables with the folder for compiled code, of the library that compiled."""
    has_torch = "torch" in main.process.libraries
    if large or (uses_jax(main) and not has_torch):
        return "`JAX_COMPILATION_CACHE_DIR`"
    if has_torch and not uses_jax(main):
        return "`TORCHINDUCTOR_CACHE_DIR`"
    return "`TORCHINDUCTOR_CACHE_DIR` or `JAX_COMPILATION_CACHE_DIR`"
