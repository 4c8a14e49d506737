"""A few steps took far longer than most steps; saving and waiting for data do not explain this."""

from __future__ import annotations

from collections.abc import Mapping

from teho.explain.lines import sections_s
from teho.explain.program_context import median_place
from teho.explain.rule import Evidence, Findings, ProgramContext, Severity, Threshold, chosen
from teho.explain.unneeded import unneeded_times
from teho.explain.wholes import whole_times
from teho.explain.wording import EVALUATE_LESS
from teho.model.in_source import WholeUse
from teho.model.program import Doing, MainProcess, Section
from teho.model.watched import Wait

RANK = 280
SEVERITY = "remark, hint"
THRESHOLDS = {
    "times_longer": chosen(
        4.0, "times", "a step does not take 4 times the median step time by chance"
    ),
    "long_steps": Threshold(
        10.0,
        "steps",
        "SageMaker's profiler rules (rule StepOutlier) warn if more than 10 steps are too long",
    ),
    "rare_percent": Threshold(
        20.0,
        "%",
        "as in the rule input_skewed: if more than a fifth of the steps are long, long steps are "
        "not exceptions",
    ),
    "evaluated_percent": chosen(
        50.0, "%", "above this limit, evaluation explains most of the additional time"
    ),
    "cost_percent": Threshold(
        5.0,
        "%",
        "XProf, a profiler, reports waiting for data if it takes 5 % of the step time or more; "
        "Teho uses the same limit for the additional time of long steps",
    ),
}

NAMES_NO_CAUSE = True


def judge(context: ProgramContext) -> Findings:
    """Compare the long steps with the usual steps.

    If the program evaluated its model in these steps, it can evaluate less often. Otherwise it is
    not known what these steps did, so the finding is only a hint.
    """
    for main in context.mains:
        between = main.process.progress[-1].between if main.process.progress else {}
        usual_s = _usual_s(between)
        if not usual_s:
            continue
        least_s = context.limit("times_longer") * usual_s
        steps = between.values()
        long = [wait for wait in steps if wait.total_s >= least_s * wait.count > 0]
        rare, count = (sum(wait.count for wait in waits) for waits in (long, steps))
        if not context.limit("long_steps") < rare <= context.limit("rare_percent") / 100 * count:
            continue
        long_s, all_s = (sum(wait.total_s for wait in waits) for waits in (long, steps))
        more_s = long_s - rare * usual_s - _explained_s(main, least_s - usual_s)
        share = 100 * more_s / all_s
        if share < context.limit("cost_percent") or more_s < context.limit("lost_min_s"):
            continue
        evaluated_s = sections_s(main.process).get(Section.EVALUATION, 0.0)
        is_evaluation = evaluated_s >= context.limit("evaluated_percent") / 100 * more_s
        why = (
            f" Evaluation took {100 * evaluated_s / main.process.wall_s:.0f} % of the time."
            if is_evaluation
            else ""
        )
        yield context.finding(
            Severity.REMARK if is_evaluation else Severity.HINT,
            f"A few steps ({rare:,} of {count:,}) took {long_s / rare / usual_s:.0f} times as "
            f"long as usual. The additional time of these steps was {share:.0f} % of the time of "
            f"all steps.{why}",
            evidence=(
                Evidence("usual time of a step", usual_s, "s"),
                Evidence("mean time of the long steps", long_s / rare, "s"),
                Evidence("additional time of the long steps", more_s, "s"),
            ),
            action=EVALUATE_LESS
            if is_evaluation
            else (
                "Check what the program does in these steps, for example evaluation, writing "
                "files, garbage collection, or compiling for new shapes. Give these parts names "
                "with `teho.phase`: the report then shows the time of each part."
            ),
            regain_percent=(0.0, min(100.0, 100 * more_s / main.process.wall_s))
            if is_evaluation
            else None,
        )
        return


def _usual_s(between: Mapping[int, Wait]) -> float:
    """Return the mean of the steps about as long as the median; 0 without any steps."""
    median = between.get(median_place(between))
    return median.total_s / median.count if median and median.count else 0.0


def _explained_s(main: MainProcess, least_s: float) -> float:
    """Return the time that other findings explain.

    This is the time of saving, of waits for data that are long enough for a long step, of results
    that are computed in a few steps but used in fewer, and of results that are saved again.
    """
    loader = main.feed.loader
    waits = loader.waits.values() if loader else ()
    waited_s = sum(wait.total_s for wait in waits if wait.total_s >= least_s * wait.count)
    unused_s = sum(one.wall_s for one in unneeded_times(main) if one.unneeded.condition)
    saved_s = sum(
        one.wall_s for one in whole_times(main) if one.whole.use is WholeUse.SAVED and one.is_lost()
    )
    first_s = loader.first_s if loader else 0.0
    return main.seconds(Doing.SAVING) + waited_s + first_s + unused_s + saved_s
