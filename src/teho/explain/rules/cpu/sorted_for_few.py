"""The program sorts a whole collection, but uses only its first or last few elements.

The stacks show that the sort took the time. The program's source shows that all uses of the result
take the same few elements, such as `sorted(scores)[:10]`, and how many elements these are. Finding
them without sorting all the others is much faster.
"""

from __future__ import annotations

import msgspec

from teho.explain.rule import Certainty, Evidence, Findings, Located, ProgramContext, chosen
from teho.explain.wholes import LONG_SORTS_PART, WholeTime, whole_times
from teho.model.in_source import Whole, WholeUse
from teho.model.program import MainProcess

RANK = 216
SEVERITY = "critical, warning"
THRESHOLDS = {
    "long_sorts_part": LONG_SORTS_PART,
    "explains_percent": chosen(
        50.0, "%", "above this limit, the sort is the main reason why the run takes long"
    ),
}
MUTES = ("python_bound", "input_slow", "serial_program", "cores_unused")
MUTES_BECAUSE = "if most of the time goes to sorting, this finding says how to avoid it"
SAME_LOSS_AS = ("known_activity",)
_REGAIN = (0.4, 0.95)
"""Part of the time that is saved: all elements are still compared once."""


def judge(context: ProgramContext) -> Findings:
    """Find sorts of which only few elements are used, in the process that ran longest."""
    for main in context.mains[:1]:
        for time in whole_times(main):
            is_lost = time.is_lost(long_sorts_part=context.limit("long_sorts_part"))
            is_sort = time.whole.use is WholeUse.SORTED
            if is_sort and is_lost and context.is_loss(time.wall_s, main):
                yield _found(context, main, time)


def _found(context: ProgramContext, main: MainProcess, time: WholeTime) -> Located:
    whole, call = time.whole, time.whole.call
    share = min(100.0, 100 * time.wall_s / main.process.wall_s)
    count = f"{whole.count:,} element{'s' * (whole.count != 1)}"
    of_all = f" of {whole.size:,}" if whole.size else ""
    cut = whole.made[0]
    where = f" (`{cut.short_text}` at {cut.short_place})" if cut.text != whole.key else ""
    finding = context.lost(
        f"Sorting `{whole.name}` at {call.short_place} took {share:.0f} % of the run time, but the "
        f"program uses only {count}{of_all}{where}.",
        share_percent=share,
        evidence=(
            Evidence("share of the run time spent on sorting", share, "%"),
            Evidence("time spent on sorting", time.wall_s, "s"),
            Evidence("elements used", f"{cut.short_place}  {cut.short_text}"),
        ),
        action=_action(whole),
        regain_percent=(_REGAIN[0] * share, _REGAIN[1] * share),
        lines=time.lines,
        mutes=share >= context.limit("explains_percent"),
        certainty=Certainty.LIKELY,
    )
    return msgspec.structs.replace(finding, explains_loading=time.in_loading)


def _action(whole: Whole) -> str:
    *first, last = whole.instead
    line = whole.call.line
    if not first:
        extra = " Import `heapq`." if last.startswith("heapq.") else ""
        column = " This needs a column of numbers or times." if whole.how == ".sort_values" else ""
        return f"In line {line}, use `{last}` instead of `{whole.key}`.{extra}{column}"
    lines = " and then ".join(f"`{one}`" for one in whole.instead)
    if whole.target:
        return f"Instead of line {line}, write {lines}. The result has the same order."
    return (
        f"Before line {line}, write {lines}, and use `top` instead of `{whole.key}`. The result "
        "has the same order."
    )
