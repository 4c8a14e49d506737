"""The program passes many small messages to its worker processes, which have little work.

Each message wakes up another process. This takes longer than the work that the message asks for.
"""

from __future__ import annotations

from teho.explain.activities import ActivityTime, activity_times
from teho.explain.messages import OBJECTS_PASSED, SmallMessages, small_messages
from teho.explain.rule import Evidence, Findings, Located, ProgramContext, chosen
from teho.model.program import MainProcess

RANK = 214
SEVERITY = "critical, warning"
THRESHOLDS = {
    "explains_percent": chosen(
        50.0, "%", "above this limit, the messages are the main reason why the run takes long"
    ),
}
MUTES = ("python_bound", "input_slow", "serial_program", "cores_unused", "waits_long")
MUTES_BECAUSE = "this finding says what the program does instead of its main work"


def judge(context: ProgramContext) -> Findings:
    """Find a program that passes objects to child processes which hardly use a core.

    The bytes of all reads and writes, which include pipes, show that the objects are small. The
    context switches of the node show that there are many messages.
    """
    for main in context.mains[:1]:
        for time in activity_times(main):
            if time.activity.name == OBJECTS_PASSED and context.is_loss(time.wall_s, main):
                small = small_messages(context, main, time)
                if small is not None:
                    yield _found(context, main, time, small)


def _found(
    context: ProgramContext, main: MainProcess, time: ActivityTime, small: SmallMessages
) -> Located:
    share = min(100.0, 100 * time.wall_s / main.process.wall_s)
    worked = 100 * small.worked_s / main.process.wall_s
    function = small.function
    what = f"`{function.function}` ({function.short_place})" if function else "these processes"
    at = f" at {time.lines[0][0].short_place}" if time.lines else ""
    return context.lost(
        f"Passing many small messages between processes{at} took {share:.0f} % of the time. "
        f"The {len(main.children)} child processes had little work.",
        share_percent=share,
        evidence=(
            Evidence("share of the run time spent on passing messages", share, "%"),
            Evidence("work of all child processes, as a share of the run time", worked, "%"),
            Evidence("context switches of the node", small.switches_per_s, "1/s"),
            Evidence("data read or written while passing messages", small.bytes_per_s, "bytes/s"),
        ),
        action=(
            f"Do the work of {what} in the main process, without child processes: put the objects "
            f"of these processes into a list, and call their functions in a loop{at} instead "
            "of sending messages. If the work must stay in other processes, send many items with "
            "each message, for example a list of 100 items. With a pool, use `pool.map(function, "
            "items, chunksize=100)`."
        ),
        judged_by=["small_messages_mb_per_s", "switches_per_s_min"],
        regain_percent=((share - worked) / 2, share - worked),
        lines=time.lines,
        mutes=share >= context.limit("explains_percent"),
    )
