"""A loop sends queries to a database, and the table has no index for their condition.

Without an index, the database reads the whole table for each query, even if the query selects only
one row. The stacks show how long the program waited for the query. The program's source shows the
query, the statement that creates the table, and all statements that create indexes. Teho reports
only tables that the program creates, and only queries that are repeated: in a loop, or inside
another query, which runs them for each of its rows. If Teho does not understand a query, a table or
an index, Teho reports nothing.

If a condition calls a function on a column (`WHERE date(taken_at) = ?`), the database cannot use an
index of this column. SQLite can have an index for the result of the function.
"""

from __future__ import annotations

from teho.explain.loops import each_pass, loop_evidence
from teho.explain.queries import IndexTime, index_times
from teho.explain.rule import Certainty, Evidence, Findings, Located, ProgramContext, chosen
from teho.explain.wording import listed
from teho.model.program import MainProcess
from teho.patterns import lazy_pattern

RANK = 207
SEVERITY = "critical, warning"
THRESHOLDS = {
    "explains_percent": chosen(
        50.0, "%", "above this limit, the missing index is the main reason why the run takes long"
    ),
}
MUTES = ("python_bound", "input_slow", "serial_program", "cores_unused")
MUTES_BECAUSE = "if one query takes most of the time, this finding says how to make it fast"
SAME_LOSS_AS = ("work_repeated", "known_activity")
_REGAIN = (0.3, 0.98)
"""Part of the time that an index saves: almost all of it if a query selects a few rows. If a query
selects many rows, the time for these rows remains."""
_WORDS = lazy_pattern(r"\w+")
_COMPUTED = (
    " An index on the column itself would not help, because the query calls a function on the "
    "column."
)
_MANY_ROWS = (
    " If each query selects many of the rows, read the whole table with one query before the "
    "loop instead, and group its rows in a dictionary."
)


def judge(context: ProgramContext) -> Findings:
    """Find queries that lack an index, in the process that ran longest."""
    for main in context.mains[:1]:
        for time in index_times(main):
            if context.is_loss(time.wall_s, main):
                yield _found(context, main, time)


def _found(context: ProgramContext, main: MainProcess, time: IndexTime) -> Located:
    missing, share = time.missing, min(100.0, 100 * time.wall_s / main.process.wall_s)
    columns = ", ".join(missing.columns)
    is_one_call = missing.loop == missing.frame
    if missing.is_inner:
        each = "for each row of the outer query"
    elif is_one_call:
        each = "for each row of `executemany`"
    else:
        each = f"in each {each_pass(missing.loop)}"
    name = "_".join((missing.table, *_WORDS.findall(columns))).lower()
    index = f"CREATE INDEX {name} ON {missing.table} ({columns})"
    is_computed = any("(" in one for one in missing.columns)
    return context.lost(
        f"Queries on the table `{missing.table}` took {share:.0f} % of the run time, at "
        f"{missing.frame.short_place}. The table has no index on "
        f"{listed([f'`{one}`' for one in missing.columns])}, so the database reads the whole table "
        f"{each}.{_COMPUTED if is_computed else ''}",
        share_percent=share,
        evidence=(
            Evidence("share of the run time spent in these queries", share, "%"),
            Evidence("time spent in these queries", time.wall_s, "s"),
            Evidence("table created at", missing.made.short_place),
            *([] if is_one_call else [loop_evidence(missing.loop)]),
        ),
        action=(
            f"After the program has filled the table, and before the queries, execute once: "
            f"`{index}`.{'' if is_one_call else _MANY_ROWS}"
        ),
        judged_by=[],
        regain_percent=(_REGAIN[0] * share, _REGAIN[1] * share),
        lines=time.lines,
        mutes=share >= context.limit("explains_percent"),
        certainty=Certainty.LIKELY,
    )
