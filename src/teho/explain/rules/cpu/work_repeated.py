"""A loop computes the same result again in each iteration.

The stacks show which call took the time, and the program's source shows where the inputs of this
call come from. If none of them changes in a loop around the call, and the call changes nothing, the
loop needs the result only once. Examples are a matrix that is factorised again for each right-hand
side, a filter that is designed again for each recording, and a file that is parsed again in each
epoch. Teho follows only inputs of which it is sure; so it does not find all repeated work.
"""

from __future__ import annotations

import msgspec

from teho.explain.repeated import RepeatedTime, repeated_times
from teho.explain.rule import Certainty, Evidence, Findings, Located, ProgramContext, chosen
from teho.model.program import MainProcess
from teho.model.watched import Frame

RANK = 202
SEVERITY = "critical, warning"
THRESHOLDS = {
    "repeated_percent": chosen(
        5.0, "%", "repeated work is never needed, so a smaller share than of other losses counts"
    ),
    "repeated_min_s": chosen(
        0.5, "s", "Teho reads the stacks about 20 times per second: this time has about 10 samples"
    ),
    "explains_percent": chosen(
        50.0, "%", "above this limit, the repeated work is the main reason why the run takes long"
    ),
}
MUTES = ("python_bound", "input_slow", "serial_program", "cores_unused")
MUTES_BECAUSE = "if most of the time goes to repeated work, this finding says how to avoid it"
SAME_LOSS_AS = ("known_activity",)
_MOST = 0.5
"""Part of a call that is in a call that was named before, from which it is not named too."""
_REGAIN_SAME = (0.6, 0.95)
_REGAIN_SET = (0.3, 0.9)
"""Part of the time that is saved if the work is done once. The number of iterations is not known:
with two of them half of the time is saved."""


def judge(context: ProgramContext) -> Findings:
    """Find calls whose result is the same in each iteration, in the process that ran longest."""
    for main in context.mains[:1]:
        covered: set[tuple[Frame, ...]] = set()
        for time in repeated_times(main):
            share = 100 * time.wall_s / context.work_s(main)
            is_loss = share >= context.limit("repeated_percent")
            is_seen = time.wall_s >= context.limit("repeated_min_s")
            inner_s = sum(s for stack, s in time.stacks.items() if stack in covered)
            if is_loss and is_seen and inner_s < _MOST * time.wall_s:
                covered.update(time.stacks)
                yield _found(context, main, time)


def _found(context: ProgramContext, main: MainProcess, time: RepeatedTime) -> Located:
    repeated, call, loop = time.repeated, time.call, time.repeated.loop
    share = min(100.0, 100 * time.wall_s / main.process.wall_s)
    least, most = _REGAIN_SAME if repeated.is_same else _REGAIN_SET
    is_function = loop.text.startswith(("def ", "async def "))
    each = (
        f"call of `{loop.function.rpartition('.')[2]}`"
        if is_function
        else f"iteration of the loop at {_place(loop)}"
    )
    if repeated.is_same:
        sentence = (
            f"`{call.short_text}` at {_place(call)} took {share:.0f} % of the time. Its result "
            f"is the same in each {each}."
        )
        action = (
            f"Compute it once outside of `{loop.function.rpartition('.')[2]}`, and use this "
            "result in each call"
            if is_function
            else "Compute it once before the loop, and use this result in each iteration"
        )
    else:
        sentence = (
            f"`{call.short_text}` at {_place(call)} took {share:.0f} % of the time. It is "
            f"computed for the same values again in each {each}."
        )
        action = "Compute all results once before the loop, and keep them in memory or in a file"
    if repeated.has_cache:
        sentence += " The cache of the function is too small to keep the results."
        action = "Give the cache room for all results: `@lru_cache(maxsize=None)`"
    finding = context.lost(
        sentence,
        share_percent=share,
        evidence=(
            Evidence("repeated work", share, "%"),
            Evidence("loop", f"{_place(loop)}  {loop.short_text}"),
        ),
        action=f"{action}.",
        judged_by=["repeated_percent"],
        regain_percent=(least * share, most * share),
        lines=[(call, time.wall_s)],
        mutes=share >= context.limit("explains_percent"),
        certainty=None if repeated.is_same else Certainty.LIKELY,
    )
    is_cause = time.in_loading and repeated.is_same
    return msgspec.structs.replace(finding, explains_loading=is_cause)


def _place(frame: Frame) -> str:
    return f"{frame.file.rpartition('/')[2]}:{frame.line}"
