"""A loop searches a long list from its start again and again, or moves all of its elements.

The stacks show that a search such as `x in items` took the time, and the program's source shows
that `items` is a list that the loop does not make again for each search. A set or a dictionary
finds an element at once. `items.pop(0)` moves all other elements; a `deque` does not. If the loop
also sorts the list each time, a heap finds the smallest element much faster. Teho reports this only
if the search takes several times as long as all other lines of the loop, or `pop(0)` as all
statements that are executed as often: then the list is long.
"""

from __future__ import annotations

import msgspec

from teho.explain.rule import Certainty, Evidence, Findings, Located, ProgramContext, chosen
from teho.explain.wholes import TIMES_LONGER, WholeTime, whole_times
from teho.explain.wording import listed
from teho.model.in_source import Whole, WholeUse
from teho.model.program import MainProcess
from teho.model.stack import Frame

RANK = 218
SEVERITY = "critical, warning"
THRESHOLDS = {
    "times_longer": TIMES_LONGER,
    "explains_percent": chosen(
        50.0, "%", "above this limit, the searches are the main reason why the run takes long"
    ),
}
MUTES = ("python_bound", "input_slow", "serial_program", "cores_unused")
MUTES_BECAUSE = "if most of the time goes to searching a list, this finding says how to avoid it"
SAME_LOSS_AS = ("known_activity",)
_REGAIN = (0.6, 0.98)
"""Part of the time that is saved: computing the hash of an element takes time too."""


def judge(context: ProgramContext) -> Findings:
    """Find searches in lists, in the process that ran longest."""
    for main in context.mains[:1]:
        for time in whole_times(main):
            is_of_list = time.whole.use in {WholeUse.SEARCHED, WholeUse.SHIFTED}
            is_long = time.is_lost(context.limit("times_longer"))
            if is_of_list and is_long and context.is_loss(time.wall_s, main):
                yield _found(context, main, time)


def _found(context: ProgramContext, main: MainProcess, time: WholeTime) -> Located:
    whole, call = time.whole, time.lines[0][0]
    share = min(100.0, 100 * time.wall_s / main.process.wall_s)
    text, what, why = call.short_text, "Searching", "compares the elements one after the other"
    if whole.use is WholeUse.SHIFTED:
        what, why = "Changing the start of", "moves all other elements"
    if whole.how == "sort":
        text, what, why = (
            f"{whole.name}.sort()",
            "Sorting",
            "is only needed to find the smallest element, in each iteration",
        )
    others = [one for one, _ in time.lines[1:]]
    more = f" (and {listed([one.short_place for one in others])})" if others else ""
    finding = context.lost(
        f"{what} the list `{whole.name}` at {call.short_place}{more} took {share:.0f} % of the run "
        f"time: `{text}` {why}.",
        share_percent=share,
        evidence=(
            Evidence("share of the run time spent on the list", share, "%"),
            Evidence("time spent on the list", time.wall_s, "s"),
            Evidence("time of the other lines of the loop", time.beside_s, "s"),
            *_as_often(time),
            *(Evidence("list", f"{one.short_place}  {one.short_text}") for one in whole.made[:1]),
        ),
        action=_action(whole, [one for one, _ in time.lines]),
        judged_by=["times_longer"],
        regain_percent=(_REGAIN[0] * share, _REGAIN[1] * share),
        lines=time.lines,
        mutes=share >= context.limit("explains_percent"),
        certainty=Certainty.LIKELY,
    )
    return msgspec.structs.replace(finding, explains_loading=time.in_loading)


def _as_often(time: WholeTime) -> list[Evidence]:
    if time.as_often_s is None:
        return []
    return [Evidence("time of statements that are executed as often", time.as_often_s, "s")]


def _action(whole: Whole, calls: list[Frame]) -> str:
    if whole.how == "sort":
        return _as_heap(whole)
    if whole.use is WholeUse.SHIFTED:
        return _as_deque(whole)
    if whole.how == "in":
        return _as_set(whole, calls)
    if whole.how == "index" and not (whole.grows or whole.shrinks):
        return (
            f"Before the loop, compute the place of each element once: `places = {{value: place "
            f"for place, value in reversed(list(enumerate({whole.name})))}}`. In line "
            f"{whole.call.line}, use `places[{whole.key}]` instead of "
            f"`{whole.name}.index({whole.key})`."
        )
    if whole.how == "count" and not (whole.grows or whole.shrinks):
        return (
            f"Before the loop, count all elements once: `counts = collections.Counter({whole.name})"
            f"`. In line {whole.call.line}, use `counts[{whole.key}]` instead of "
            f"`{whole.name}.count({whole.key})`."
        )
    if whole.how == "count":
        return (
            f"In addition to the list, keep the counts: `counts = collections.Counter()`, and "
            f"`counts[x] += 1` wherever an element `x` is added ({_lines(whole.grows)}). In line "
            f"{whole.call.line}, use `counts[{whole.key}]`."
        )
    return (
        f"Keep the elements in a dictionary instead of a list: `{whole.name} = dict.fromkeys(...)` "
        f"({_lines(whole.made)}). It keeps their order, and finds or removes an element at once: "
        f"`del {whole.name}[{whole.key}]`."
    )


def _as_set(whole: Whole, calls: list[Frame]) -> str:
    """Return the advice to search in a set."""
    add = f", and `{{}}.add(...)` instead of `append` ({_lines(whole.grows)})"
    if whole.is_only_searched and not whole.shrinks:
        add = add.format(whole.name) if whole.grows else ""
        return (
            f"Make `{whole.name}` a set, with `set(...)` around its value ({_lines(whole.made)})"
            f"{add}. The program does nothing else with this list."
        )
    beside = whole.name.replace(".", "_").removeprefix("self_") + "_set"
    name = f"self.{beside}" if whole.name.startswith("self.") else beside
    text = f"In addition to the list, keep a set: `{name} = set(...)` wherever the list is made"
    text += f" ({_lines(whole.made)})"
    if whole.grows:
        text += f", `{name}.add(...)` wherever an element is added ({_lines(whole.grows)})"
    if whole.shrinks:
        text += f", `{name}.discard(...)` wherever one is removed ({_lines(whole.shrinks)})"
    places = ", ".join(str(line) for line in sorted({one.line for one in calls}))
    lines = f"line{'s' * (',' in places)} {places}"
    return f"{text}. In {lines}, search in `{name}` instead of `{whole.name}`."


def _as_deque(whole: Whole) -> str:
    """Return the advice to use a queue whose start can be changed at once."""
    calls = {
        "pop": f"`{whole.name}.popleft()` instead of `{whole.name}.pop(0)`",
        "insert": f"`{whole.name}.appendleft({whole.key})` instead of "
        f"`{whole.name}.insert(0, {whole.key})`",
        "del": f"`{whole.name}.popleft()` instead of `del {whole.name}[0]`",
    }
    return (
        f"Make `{whole.name}` a deque: write `from collections import deque` at the top of the "
        f"file, and `deque(...)` around the list ({_lines(whole.made)}). In line "
        f"{whole.call.line}, use {calls[whole.how]}. A deque "
        "has no slices (`x[1:]`) and no `sort`: if the program needs these, first write `list(x)`."
    )


def _as_heap(whole: Whole) -> str:
    """Return the advice to keep the elements in a heap instead of a sorted list."""
    pop, *pushes = whole.instead
    added = listed([f"`{one}`" for one in pushes])
    return (
        f"Keep the elements in a heap (`import heapq`): remove `{whole.name}.sort()`, write "
        f"`{pop}` instead of `{whole.name}.pop(0)` ({_lines(whole.shrinks)}), and {added} instead "
        f"of `append` ({_lines(whole.grows)}). If the list has several elements before the loop at "
        f"line {whole.loop.line}, first write `heapq.heapify({whole.name})`. The order of the "
        "elements stays the same."
    )


def _lines(frames: tuple[Frame, ...]) -> str:
    """Return the lines, as advice has them: `train.py:12 and 15`."""
    if not frames:
        return "where it gets its value"
    first, *others = frames
    places = [first.short_place]
    places += [str(one.line) if one.file == first.file else one.short_place for one in others]
    return listed(places)
