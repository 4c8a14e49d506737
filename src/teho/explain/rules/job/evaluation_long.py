"""Evaluation or validation takes a large part of a training run."""

from __future__ import annotations

from teho.explain.activities import main_activity
from teho.explain.gpu_lines import gpu_lines
from teho.explain.lines import own_lines, sections_s, stacks_in
from teho.explain.program_context import in_lines, mostly
from teho.explain.rule import Evidence, Findings, ProgramContext, Severity, chosen
from teho.explain.wording import EVALUATE_LESS
from teho.model.program import MainProcess, Section

RANK = 275
SEVERITY = "critical, warning, remark"
THRESHOLDS = {
    "evaluation_percent": chosen(
        25.0, "%", "below this limit, the time for evaluation is normal in a training run"
    ),
    "evaluation_warning_percent": chosen(
        35.0,
        "%",
        "above this limit, a run without evaluation could do 1.5 times as much training in the "
        "same time",
    ),
}
NAMES_NO_CAUSE = True


def judge(context: ProgramContext) -> Findings:
    """Compare the time of evaluation with the time after the set-up.

    A program without known steps is not judged: evaluation may be its purpose.
    """
    for main in context.mains:
        sections = sections_s(main.process)
        evaluated_s = sections.get(Section.EVALUATION, 0.0)
        whole_s = sum(sections.values()) - sections.get(Section.SET_UP, 0.0)
        if not main.process.progress or whole_s <= 0 or not context.is_loss(evaluated_s, main):
            continue
        share = 100 * evaluated_s / whole_s
        if share < context.limit("evaluation_percent"):
            continue
        if _is_explained(context, main, evaluated_s):
            continue
        lines = [
            (line.frame, line.own_s)
            for line in own_lines(main.process)
            if line.section is Section.EVALUATION and line.own_s > 0
        ]
        most, faster = mostly(main_activity(stacks_in(main.process, Section.EVALUATION)))
        sentence = f"After the set-up, evaluation took {share:.0f} % of the remaining time.{most}"
        evidence = (
            Evidence("share of evaluation in the time after the set-up", share, "%"),
            Evidence("time spent on evaluation", evaluated_s, "s"),
        )
        action = EVALUATE_LESS
        if faster:
            action = f"{faster}. Or evaluate less often, or on a fixed part of the data."
        regain = (share / 2, 0.9 * share)
        if share < context.limit("evaluation_warning_percent"):
            yield context.finding(
                Severity.REMARK,
                sentence,
                evidence=(*evidence, *in_lines(lines)),
                action=action,
                regain_percent=regain,
            )
        else:
            yield context.lost(
                sentence,
                share_percent=share,
                evidence=evidence,
                action=action,
                regain_percent=regain,
                lines=lines,
            )
        return


def _is_explained(context: ProgramContext, main: MainProcess, evaluated_s: float) -> bool:
    """Return whether another finding names the lines that took most of the evaluation."""
    lines = gpu_lines(context, main)
    if lines is None:
        return False
    inside = stacks_in(main.process, Section.EVALUATION)
    explained_s = sum(seen.wall_s for seen in inside if seen.frames in lines.stacks)
    return 2 * explained_s >= evaluated_s
