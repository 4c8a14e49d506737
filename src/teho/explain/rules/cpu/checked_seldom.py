"""The program sleeps for too long between two checks whether a child process has a result.

The stacks show that the program sleeps in a loop, and that its child processes have no work for
most of this time. The program's source shows that the loop does nothing except checking whether a
result is there, such as a file. A result that comes shortly after a check waits for the rest of the
pause. A child process has no work if it waits for a task in a queue, or sleeps before it looks
again for the file of a task.
"""

from __future__ import annotations

from teho.explain.options import in_words
from teho.explain.pauses import WORKED_PERCENT, LongPause, long_pauses
from teho.explain.rule import Certainty, Evidence, Findings, Located, ProgramContext, chosen
from teho.model.program import MainProcess

RANK = 199
SEVERITY = "critical, warning"
THRESHOLDS = {
    "worked_percent": WORKED_PERCENT,
    "explains_percent": chosen(
        50.0, "%", "above this limit, the pauses are the main reason why the run takes long"
    ),
}
MUTES = ("waits_long", "serial_program", "cores_unused")
MUTES_BECAUSE = "this finding says why neither the program nor its child processes work"
SAME_LOSS_AS = ("known_activity",)
_REGAIN = (0.3, 0.98)
"""Part of the time that is saved: the child processes may also wait for something else."""


def judge(context: ProgramContext) -> Findings:
    """Compare the time in a pause with the work of the child processes.

    Only the time counts in which no child process works. Without child processes, it is not known
    whether the result was there earlier.
    """
    for main in context.mains[:1]:
        for pause in long_pauses(main, context.limit("worked_percent")):
            if context.is_loss(pause.lost_s, main):
                yield _found(context, main, pause)
                return


def _found(context: ProgramContext, main: MainProcess, pause: LongPause) -> Located:
    found = pause.found
    at, words = found.places[0], found.words
    share = 100 * pause.lost_s / main.process.wall_s
    slept = min(100.0, 100 * found.seconds / main.process.wall_s)
    worked = 100 * pause.worked_s / main.process.wall_s
    return context.lost(
        f"For {share:.0f} % of the run time, the program slept at {at.short_place} and no child "
        f"process had work: it sleeps for {words['pause']} s between two checks.",
        share_percent=share,
        evidence=(
            Evidence("time in which the program slept between checks", slept, "%"),
            Evidence("work of the child processes", worked, "%"),
            Evidence("check", f"{words['checked_at']}  {words['check']}"),
        ),
        action=in_words(found.option.advice, found.places, words),
        judged_by=["worked_percent"],
        regain_percent=(_REGAIN[0] * share, _REGAIN[1] * share),
        lines=[(at, found.seconds)],
        mutes=share >= context.limit("explains_percent"),
        # A child process that sleeps may wait for something outside of the program too.
        certainty=Certainty.LIKELY if pause.lost_s > 2 * pause.slept_s else Certainty.POSSIBLE,
    )
