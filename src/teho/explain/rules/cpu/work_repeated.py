"""A loop computes the same result again in each iteration.

The stacks show which call took the time, and the program's source shows where the inputs of this
call come from. If no input changes in a loop around the call, and the call changes nothing, the
loop needs the result only once. Examples are a matrix that is factorised again for each right-hand
side, a filter that is designed again for each recording, a graph that each `forward` normalises
again, and a file that is parsed again in each epoch. Teho reports only calls whose inputs it knows
for sure, so some repeated work is not found.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from teho.explain.loops import each_pass, function_name, is_function, loop_evidence
from teho.explain.repeated import RepeatedTime, repeated_times
from teho.explain.rule import Certainty, Evidence, Findings, Located, ProgramContext, chosen
from teho.explain.shared_thresholds import TEN_SAMPLES
from teho.explain.unneeded import unneeded_times
from teho.explain.wording import listed
from teho.model.in_source import Repeated
from teho.model.program import MainProcess
from teho.model.stack import Frame
from teho.patterns import lazy_pattern

RANK = 202
SEVERITY = "critical, warning"
THRESHOLDS = {
    "repeated_percent": chosen(
        5.0, "%", "repeated work is never needed, so Teho also reports it if its share is small"
    ),
    "repeated_min_s": TEN_SAMPLES,
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
_NAMED = 0.1
"""Part of the time of a finding from which a further call counts in its sentence."""
_COPY = (
    " The program changes the result afterwards. So keep the result as it is, and give the program "
    "a copy each time, for example with `copy.deepcopy`."
)
_METHOD = lazy_pattern(r"\(\s*self\b")


def judge(context: ProgramContext) -> Findings:
    """Find calls whose result is the same in each iteration, in the process that ran longest."""
    for main in context.mains[:1]:
        # What is used seldom need not be faster.
        covered = {stack for one in unneeded_times(main) for stack in one.stacks}
        for time in repeated_times(main):
            share = 100 * time.wall_s / context.work_s(main)
            is_loss = share >= context.limit("repeated_percent")
            is_seen = time.wall_s >= context.limit("repeated_min_s")
            inner_s = sum(s for stack, s in time.stacks.items() if stack in covered)
            if is_loss and is_seen and inner_s < _MOST * time.wall_s:
                covered.update(time.stacks)
                yield _found(context, main, time)


def _found(context: ProgramContext, main: MainProcess, time: RepeatedTime) -> Located:
    repeated, call, loop = time.repeated, time.lines[0][0], time.repeated.loop
    share = min(100.0, 100 * time.wall_s / main.process.wall_s)
    is_kept = repeated.is_same and not repeated.is_changed
    least, most = _REGAIN_SAME if is_kept else _REGAIN_SET
    others = sum(s >= _NAMED * time.wall_s for _, s in time.lines[1:])
    calls = "these calls" if others else "this call"
    finding = context.lost(
        f"`{call.short_text}` at {call.short_place}{_and(others, call)} took {share:.0f} % of the "
        f"run time. {_why(repeated, is_one=not others)}",
        share_percent=share,
        evidence=(
            Evidence(f"share of the run time spent in {calls}", share, "%"),
            Evidence(f"time spent in {calls}", time.wall_s, "s"),
            loop_evidence(loop),
        ),
        action=_action(time, is_one=not others) + (_COPY if repeated.is_changed else ""),
        judged_by=["repeated_percent"],
        regain_percent=(least * share, most * share),
        lines=time.lines,
        mutes=share >= context.limit("explains_percent"),
        certainty=None if repeated.is_same else Certainty.LIKELY,
    )
    return msgspec.structs.replace(finding, explains_loading=time.in_loading)


def _and(others: int, call: Frame) -> str:
    """Return the words that say how many further calls of the function are repeated too."""
    if not others:
        return ""
    name = call.function.rpartition(".")[2]
    where = "" if name.startswith("<") else f" in `{name}`"
    return f" and {others} more call{'s' * (others > 1)}{where}"


def _why(repeated: Repeated, *, is_one: bool) -> str:
    """Return the sentence that says what is repeated."""
    each = each_pass(repeated.loop)
    if repeated.is_same:
        what = "The result of this call is" if is_one else "The results of these calls are"
        return f"{what} the same in each {each}."
    these = "this call" if is_one else "these calls"
    again = f"Each {each} makes {these} for the same values as the {each.partition(' ')[0]} before."
    if not repeated.has_cache:
        return again
    return (
        f"{again} The function has a cache, but computes the results again: perhaps the cache "
        "keeps fewer results than the program needs."
    )


def _is_in_forward(repeated: Repeated) -> bool:
    """Return whether the call is in the `forward` of a module, and the loop in another function."""
    call, loop = repeated.call, repeated.loop
    is_forward = call.function.rpartition(".")[2] == "forward"
    return is_forward and not is_function(loop) and call.function != loop.function


def _first_of(time: RepeatedTime, lines: Sequence[int]) -> list[Frame]:
    """Return a call of each line, in the order of the lines."""
    by_line = {one.line: one for one, _ in reversed(time.lines)}
    return [by_line[line] for line in lines]


def _action(time: RepeatedTime, *, is_one: bool) -> str:
    repeated = time.repeated
    name = function_name(repeated.loop)
    if repeated.has_cache:
        return (
            "Let the cache keep all results: `@lru_cache(maxsize=None)`. Check that all results "
            "fit in memory."
        )
    if not repeated.is_same:
        start = f"the first call of {name}" if is_function(repeated.loop) else "the loop"
        return (
            f"Before {start}, compute each result once and keep it, for example in a list or a "
            "dictionary. If the results do not fit in memory, save them in files."
        )
    result, it = ("result", "it") if is_one else ("results", "them")
    these = f"this {result}" if is_one else f"these {result}"
    if _is_in_forward(repeated):
        lines = sorted({one.line for one, s in time.lines if s >= _NAMED * time.wall_s})
        at = listed([one.short_place for one in _first_of(time, lines)])
        return (
            f"Move this work out of `{repeated.call.function}`: compute the {result} of {at} once, "
            f"before the loop at {repeated.loop.short_place}, and give the {result} to the model "
            "instead of the inputs of these lines."
        )
    if not is_function(repeated.loop):
        return f"Compute the {result} once, before the loop, and use {these} in each iteration."
    if _METHOD.search(repeated.loop.text):
        attribute = "an attribute" if is_one else "attributes"
        uses = "this attribute" if is_one else "these attributes"
        return (
            f"Compute the {result} once in `__init__`, store {it} as {attribute} of `self`, and "
            f"use {uses} in {name}."
        )
    arguments = "an argument" if is_one else "arguments"
    return (
        f"Compute the {result} once, before the first call of {name}, and give the {result} to "
        f"{name} as {arguments}."
    )
