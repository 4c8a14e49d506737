"""The program computes results that it uses seldom or never.

The stacks show which expression took the time, and the program's source shows where its result is
used: only in an `if` that is rarely true, such as `step % 100 == 0`, only after the loop, or
nowhere. Teho reports this only if the expression has no other effect, and if the program could
compute the result later, or not at all, without any other change.
"""

from __future__ import annotations

import msgspec

from teho.explain.loops import is_function
from teho.explain.rule import Certainty, Evidence, Findings, Located, ProgramContext, chosen
from teho.explain.shared_thresholds import TEN_SAMPLES
from teho.explain.unneeded import UnneededTime, saved_part, unneeded_times
from teho.model.in_source import Need, Unneeded
from teho.model.program import MainProcess

RANK = 208
SEVERITY = "critical, warning"
THRESHOLDS = {
    "unused_percent": chosen(
        5.0,
        "%",
        "a result that is not used is never needed, so Teho also reports it if its share is small",
    ),
    "unused_min_s": TEN_SAMPLES,
    "explains_percent": chosen(
        50.0, "%", "above this limit, the unused results are the main reason why the run takes long"
    ),
}
MUTES = ("python_bound", "input_slow", "serial_program", "cores_unused")
MUTES_BECAUSE = "if most of the time goes to unused results, this finding says how to avoid it"
SAME_LOSS_AS = ("known_activity", "option_costly", "gpu_idle_at_lines")
_ABOUT = 0.05
"""A part such as 0.34 is written as `1 of 3`."""
_UNKNOWN = 0.5
"""Share of a result that is used in one iteration of a loop of unknown length."""


def judge(context: ProgramContext) -> Findings:
    """Find results that are used seldom or never, in the process that ran longest."""
    for main in context.mains[:1]:
        for time in unneeded_times(main):
            share = 100 * time.wall_s / context.work_s(main)
            if (
                time.unneeded.need is not Need.PART
                and share >= context.limit("unused_percent")
                and time.wall_s >= context.limit("unused_min_s")
            ):
                yield _found(context, main, time)


def _found(context: ProgramContext, main: MainProcess, time: UnneededTime) -> Located:
    one, call = time.unneeded, time.lines[0][0]
    share = min(100.0, 100 * time.wall_s / main.process.wall_s)
    least, most = saved_part(one)
    finding = context.lost(
        f"Computing `{call.short_text}` at {call.short_place} took {share:.0f} % of the run time. "
        f"{_why(one)}",
        share_percent=share,
        evidence=(
            Evidence("share of the run time spent on unused results", share, "%"),
            Evidence("time spent on unused results", time.wall_s, "s"),
            *(Evidence("used at", f"{at.short_place}  {at.short_text}") for at in one.at),
        ),
        action=_action(one),
        judged_by=["unused_percent"],
        regain_percent=(least * share, most * share),
        lines=time.lines,
        mutes=share >= context.limit("explains_percent"),
        certainty=None if one.is_sure else Certainty.LIKELY,
    )
    return msgspec.structs.replace(finding, explains_loading=time.in_loading)


def _why(one: Unneeded) -> str:
    """Return the sentences that say how the result is used."""
    if one.need is Need.NEVER:
        return "The program never uses the result."
    if one.need is Need.LAST:
        return (
            f"The loop at {one.loop.short_place} computes the result in each iteration, but the "
            f"program uses only the last one, at {one.at[0].short_place}."
        )
    often = ""
    if one.share is not None and one.share < _UNKNOWN:
        default = "" if one.is_sure else "by default "
        each = "calls" if is_function(one.loop) else "iterations"
        if one.condition is not None:
            each = "cases"
        nth = 1 / one.share
        is_even = abs(nth - round(nth)) < _ABOUT * nth
        part = f"1 of {nth:.0f}" if is_even else f"{100 * one.share:.0f} % of the"
        often = f", {default}in {part} {each}"
    places = " and ".join(at.short_place for at in one.at)
    sentence = f"The program uses the result only if `{_condition(one)}` ({places}){often}."
    if one.after:
        sentence += f" It also uses the last result at {one.after[0].short_place}."
    return sentence


def _condition(one: Unneeded) -> str:
    """Return the condition under which the result is used, as Python."""
    first = f"not ({one.at[0].text})" if one.is_skipped else one.at[0].text
    return " or ".join([first, *(at.text for at in one.at[1:])])


def _action(one: Unneeded) -> str:
    lines = _lines(one.moved)
    if one.need is Need.NEVER:
        return f"Remove {lines}."
    if one.need is Need.LAST:
        return f"Move {lines} to after the loop, so that the result is computed once."
    where = one.at[0].short_place
    if one.condition is not None:
        return f"Change the condition at {one.condition.short_place} to `{_condition(one)}`."
    if one.can_move:
        to = "to after" if one.is_skipped else "into"
        return f"Move {lines} {to} the `if` at {where}."
    action = f"Execute {lines} only if the result is used: `if {_condition(one)}:`."
    if one.after:
        action += f" Also execute {lines} once after the loop, before line {one.after[0].line}."
    return action


def _lines(numbers: tuple[int, ...]) -> str:
    if len(numbers) == 1:
        return f"line {numbers[0]}"
    return f"lines {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"
