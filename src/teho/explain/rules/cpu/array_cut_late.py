"""The program converts whole arrays, but uses only a part of each result.

The stacks show which operation on the elements of an array took the time: a change of the type, a
logarithm, or a difference. The program's source shows that all uses of the result cut the same part
out of it, such as a tile of an image. If the program first cuts out the part, the result is the
same, because each element is computed on its own.
"""

from __future__ import annotations

import msgspec

from teho.explain.rule import Certainty, Evidence, Findings, Located, ProgramContext, chosen
from teho.explain.shared_thresholds import TEN_SAMPLES
from teho.explain.unneeded import UnneededTime, unneeded_times
from teho.model.in_source import Need
from teho.model.program import MainProcess

RANK = 211
SEVERITY = "critical, warning"
THRESHOLDS = {
    "part_percent": chosen(
        10.0,
        "%",
        "the part may be almost as large as the array: below this limit, too little could be saved",
    ),
    "part_min_s": TEN_SAMPLES,
    "explains_percent": chosen(
        50.0, "%", "above this limit, these operations are the main reason why the run takes long"
    ),
}
MUTES = ("python_bound", "input_slow", "serial_program", "cores_unused")
MUTES_BECAUSE = "if most of the time goes to unused elements, this finding says how to avoid it"
SAME_LOSS_AS = ("known_activity",)
_REGAIN = (0.2, 0.95)
"""Part of the time that is saved. The size of the part is not known: a tile of 224 × 224 pixels of
an image of 256 × 256 saves a fifth, a small tile of a large image almost everything."""


def judge(context: ProgramContext) -> Findings:
    """Find operations on whole arrays of which only a part is used."""
    for main in context.mains[:1]:
        for time in unneeded_times(main):
            share = 100 * time.wall_s / context.work_s(main)
            if (
                time.unneeded.need is Need.PART
                and share >= context.limit("part_percent")
                and time.wall_s >= context.limit("part_min_s")
            ):
                yield _found(context, main, time)


def _found(context: ProgramContext, main: MainProcess, time: UnneededTime) -> Located:
    call, cut = time.lines[0][0], time.unneeded.at[0]
    share = min(100.0, 100 * time.wall_s / main.process.wall_s)
    first = min((line for line, _ in time.lines), key=lambda line: line.line)
    others = len(time.lines) - 1
    more = f" and {others} more operation{'s' * (others > 1)}" if others else ""
    finding = context.lost(
        f"Computing `{call.short_text}` at {call.short_place}{more} took {share:.0f} % of the "
        f"time, but the program uses only a part of the result: `{cut.short_text}` at "
        f"{cut.short_place}.",
        share_percent=share,
        evidence=(
            Evidence("share of the run time spent on whole arrays", share, "%"),
            Evidence("time spent on whole arrays", time.wall_s, "s"),
        ),
        action=(
            f"Take this part of each array before line {first.line}, and remove the cut at line "
            f"{cut.line}. The result is the same: each element is computed on its own."
        ),
        judged_by=["part_percent"],
        regain_percent=(_REGAIN[0] * share, _REGAIN[1] * share),
        lines=time.lines,
        mutes=share >= context.limit("explains_percent"),
        certainty=Certainty.LIKELY,
    )
    return msgspec.structs.replace(finding, explains_loading=time.in_loading)
