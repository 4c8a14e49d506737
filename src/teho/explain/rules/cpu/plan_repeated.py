"""A loop computes a lazy table again in each iteration.

The tables of Polars (`pl.scan_csv`), Dask, Spark and DuckDB are lazy: they are plans, and each
`collect()` or `compute()` reads the files again. The stacks show how long the program was in such a
call. The program's source shows that the plan begins in the same way in each iteration, for example
with the same file. Teho reports this for text files, such as CSV, which a library has to read and
parse as a whole. For other files, Teho reports it only if a step before the loop needs all rows.
The file `lazy_tables.toml` lists the libraries, and the functions by which Teho recognises the
plans.
"""

from __future__ import annotations

from teho.explain.loops import each_pass, function_name, is_function, loop_evidence
from teho.explain.plans import PlanTime, plan_times
from teho.explain.rule import Certainty, Evidence, Findings, Located, ProgramContext, chosen
from teho.model.in_source import RepeatedPlan
from teho.model.program import MainProcess
from teho.source.plans.libraries import libraries

RANK = 206
SEVERITY = "critical, warning"
THRESHOLDS = {
    "periods_min": chosen(
        3.0,
        "periods",
        "Teho sees a call that happens only once beside other lines of its loop in at most two "
        "periods of writing; from three periods on, the repetition is sure",
    ),
    "explains_percent": chosen(
        50.0, "%", "above this limit, the lazy table is the main reason why the run takes long"
    ),
}
MUTES = ("python_bound", "input_slow", "serial_program", "cores_unused")
MUTES_BECAUSE = "if most of the time goes to repeated work, this finding says how to avoid it"
SAME_LOSS_AS = ("work_repeated", "known_activity")
_REGAIN = (0.3, 0.95)
"""Part of the time that is saved. Each iteration still has to select its rows, and to compute with
them. The number of iterations is not known."""


def judge(context: ProgramContext) -> Findings:
    """Find calls that compute a lazy table again, in the process that ran longest."""
    for main in context.mains[:1]:
        for time in plan_times(main):
            if context.is_loss(time.wall_s, main):
                yield _found(context, main, time)


def _found(context: ProgramContext, main: MainProcess, time: PlanTime) -> Located:
    plan = time.plan
    share = min(100.0, 100 * time.wall_s / main.process.wall_s)
    again = "reads and parses its whole file" if plan.reads_text else "computes all its steps"
    is_sure = plan.periods >= context.limit("periods_min")
    return context.lost(
        f"The lazy table `{plan.text}` took {share:.0f} % of the run time, at "
        f"{plan.call.short_place}: each {each_pass(plan.loop)} {again} again.",
        share_percent=share,
        evidence=(
            Evidence("share of the run time spent in this call", share, "%"),
            Evidence("time spent in this call", time.wall_s, "s"),
            Evidence("lazy table", f"{plan.made.short_place}  {plan.made.short_text}"),
            loop_evidence(plan.loop),
        ),
        action=_action(plan),
        judged_by=["periods_min"],
        regain_percent=(_REGAIN[0] * share, _REGAIN[1] * share),
        lines=[(plan.call, time.wall_s)],
        mutes=share >= context.limit("explains_percent"),
        certainty=None if is_sure else Certainty.LIKELY,
    )


def _action(plan: RepeatedPlan) -> str:
    library = libraries()[plan.library]
    before = (
        f"before the first call of {function_name(plan.loop)}"
        if is_function(plan.loop)
        else f"before the loop at {plan.loop.short_place}"
    )
    text, place = f"{plan.text}{library.keep}", before
    if plan.kept is not None:
        place = f"after the assignment at {plan.kept.short_place}"
    if library.use:
        kept = (
            f"Keep the rows in a table of the database: execute `{text}` once, {place}. In each "
            f"iteration, use `{library.use}` instead of `{plan.text}`."
        )
    elif plan.is_inside:
        kept = (
            f"Compute `{text}` once, {before}. In each iteration, use this table instead of "
            f"`{plan.text}`."
        )
    else:
        kept = f"Keep the rows of the table: add the line `{plan.text} = {text}` {place}."
    return f"{kept} {library.advice}"
