"""A loop opens a connection to the same server again in each iteration.

The stacks show how long the program waited for connections, with the log-in if the same function
logs in. The program's source shows that each iteration connects to the same server in the same way.
Examples are a connection to a database for each query, and a new session of an instrument for each
measurement. Teho reports nothing if the server ends the connection after each answer.
"""

from __future__ import annotations

from teho.explain.coroutines import CallTime, reopened_times
from teho.explain.loops import each_pass, function_name, is_function, loop_evidence
from teho.explain.rule import Certainty, Evidence, Findings, Located, ProgramContext, chosen
from teho.model.in_source import ReopenedConnection
from teho.model.program import MainProcess

RANK = 201
SEVERITY = "critical, warning"
THRESHOLDS = {
    "together_percent": chosen(
        50.0,
        "%",
        "if other tasks wait at the same time for most of this time, a shorter wait of one task "
        "shortens the run less",
    ),
    "explains_percent": chosen(
        50.0, "%", "above this limit, the connections are the main reason why the run takes long"
    ),
}
MUTES = ("waits_long", "serial_program", "cores_unused")
MUTES_BECAUSE = "this finding says what the program waits for"
SAME_LOSS_AS = ("known_activity", "work_repeated")
_REGAIN = (0.6, 0.98)
_REGAIN_TOGETHER = (0.1, 0.9)
"""Part of the time that is saved if one connection is opened. The number of connections is not
known: if there are three, two thirds are saved."""
_OF_SELF = "self."


def judge(context: ProgramContext) -> Findings:
    """Find connections that are opened again, in the process that ran longest."""
    for main in context.mains[:1]:
        for time in reopened_times(main):
            if isinstance(time.in_loop, ReopenedConnection) and context.is_loss(time.wall_s, main):
                yield _found(context, main, time, time.in_loop)


def _found(
    context: ProgramContext, main: MainProcess, time: CallTime, reopened: ReopenedConnection
) -> Located:
    share = min(100.0, 100 * time.wall_s / main.process.wall_s)
    call, loop = reopened.call, reopened.loop
    together = 100 * time.together_s / time.wall_s
    is_alone = together < context.limit("together_percent")
    least, most = _REGAIN if is_alone else _REGAIN_TOGETHER
    return context.lost(
        f"Each {each_pass(loop)} opens a new connection to the same server: `{call.short_text}` at "
        f"{call.short_place} took {share:.0f} % of the run time.",
        share_percent=share,
        evidence=(
            Evidence("share of the run time spent in this call", share, "%"),
            Evidence("time spent in this call", time.wall_s, "s"),
            Evidence("connection", f"{reopened.opened.short_place}  {reopened.opened.short_text}"),
            loop_evidence(loop),
        ),
        action=_action(reopened),
        judged_by=["together_percent"],
        regain_percent=(least * share, most * share),
        lines=[(call, time.wall_s)],
        mutes=share >= context.limit("explains_percent"),
        certainty=Certainty.LIKELY,
    )


def _action(reopened: ReopenedConnection) -> str:
    call, loop = reopened.call, reopened.loop
    if is_function(loop):
        where = (
            f"Open the connection once in each process, and keep it for all calls of "
            f"{function_name(loop)}."
        )
    elif _OF_SELF in call.text:
        where = (
            f"Open the connection once, before the loop at {loop.short_place}, and remove "
            f"`{call.short_text}` at {call.short_place}: the object keeps the connection. Close it "
            "after the loop."
        )
    else:
        where = (
            f"Open the connection once, directly before the loop at {loop.short_place}, with the "
            f"call `{call.short_text}` that is now at {call.short_place}. Give the connection to "
            "the functions that use it, as an argument, and close it only after the loop."
        )
    return (
        f"{where} Open a new connection only if a request fails because the server has closed "
        "the old one."
    )
