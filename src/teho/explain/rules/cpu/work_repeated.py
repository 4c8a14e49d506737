"""A loop computes the same result again in each iteration.

The stacks show which call took the time, and the program's source shows where the inputs of this
call come from. If no input changes in a loop around the call, and the call changes nothing, the
loop needs the result only once. Examples are a matrix that is factorised again for each right-hand
side, a filter that is designed again for each recording, and a file that is parsed again in each
epoch. Teho reports only calls whose inputs it knows for sure, so some repeated work is not found.
"""

from __future__ import annotations

import re

import msgspec

from teho.explain.repeated import RepeatedTime, repeated_times
from teho.explain.rule import Certainty, Evidence, Findings, Located, ProgramContext, chosen
from teho.model.program import MainProcess
from teho.model.watched import Frame, Repeated

RANK = 202
SEVERITY = "critical, warning"
THRESHOLDS = {
    "repeated_percent": chosen(
        5.0, "%", "repeated work is never needed, so Teho also reports it if its share is small"
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
with two of them half of the time is saved. Copies of a result take time too."""
_FUNCTION = ("def ", "async def ")
"""The loop is in a library, which calls the program's function: `loop` is then its first line."""
_COPY = (
    " The program changes the result afterwards. So keep the result as it is, and give the program "
    "a copy each time, for example with `copy.deepcopy`."
)
_METHOD = re.compile(r"\(\s*self\b")


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
    is_kept = repeated.is_same and not repeated.is_changed
    least, most = _REGAIN_SAME if is_kept else _REGAIN_SET
    is_function = loop.text.startswith(_FUNCTION)
    finding = context.lost(
        f"`{call.short_text}` at {call.short_place} took {share:.0f} % of the run time. "
        f"{_why(repeated, is_function=is_function)}",
        share_percent=share,
        evidence=(
            Evidence("share of the run time spent in this call", share, "%"),
            Evidence("time spent in this call", time.wall_s, "s"),
            Evidence(
                "function" if is_function else "loop", f"{loop.short_place}  {loop.short_text}"
            ),
        ),
        action=_action(repeated, is_function=is_function) + (_COPY if repeated.is_changed else ""),
        judged_by=["repeated_percent"],
        regain_percent=(least * share, most * share),
        lines=[(call, time.wall_s)],
        mutes=share >= context.limit("explains_percent"),
        certainty=None if repeated.is_same else Certainty.LIKELY,
    )
    is_cause = time.in_loading and repeated.is_same
    return msgspec.structs.replace(finding, explains_loading=is_cause)


def _why(repeated: Repeated, *, is_function: bool) -> str:
    """Return the sentence that says what is repeated."""
    each, before = (
        (f"call of `{_name(repeated.loop)}`", "call")
        if is_function
        else (f"iteration of the loop at {repeated.loop.short_place}", "iteration")
    )
    if repeated.is_same:
        return f"The result of this call is the same in each {each}."
    again = f"Each {each} makes this call for the same values as the {before} before."
    if not repeated.has_cache:
        return again
    return (
        f"{again} The function has a cache, but computes the results again: perhaps the cache "
        "keeps fewer results than the program needs."
    )


def _action(repeated: Repeated, *, is_function: bool) -> str:
    name = _name(repeated.loop)
    if repeated.has_cache:
        return (
            "Let the cache keep all results: `@lru_cache(maxsize=None)`. Check that all results "
            "fit in memory."
        )
    if not repeated.is_same:
        start = f"the first call of `{name}`" if is_function else "the loop"
        return (
            f"Before {start}, compute each result once and keep it, for example in a list or a "
            "dictionary. If the results do not fit in memory, save them in files."
        )
    if not is_function:
        return "Compute the result once, before the loop, and use this result in each iteration."
    if _METHOD.search(repeated.loop.text):
        return (
            "Compute the result once in `__init__`, store it as an attribute of `self`, and use "
            f"this attribute in `{name}`."
        )
    return (
        f"Compute the result once, before the first call of `{name}`, and give the result to "
        f"`{name}` as an argument."
    )


def _name(loop: Frame) -> str:
    return loop.function.rpartition(".")[2]
