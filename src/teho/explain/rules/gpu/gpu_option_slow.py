"""An option or a call in the program's source makes the work of the GPU slow.

On a GPU, the time is at the line that waits for the result, so the stacks do not show what the
option costs. The finding needs the option in the source, the functions that it changes on a stack,
and a GPU that is busy. For options that let kernels run with few threads, it needs a GPU whose
multiprocessors are mostly idle. The file `costly_options.toml` lists the options (key `gpu`).
"""

from __future__ import annotations

from collections.abc import Sequence

from teho.explain.gpu_words import trace_command
from teho.explain.options import in_words, options_on_gpus
from teho.explain.rule import (
    Certainty,
    Evidence,
    Findings,
    ProgramContext,
    Severity,
    Threshold,
    chosen,
)
from teho.model.in_source import CostlyOption
from teho.model.program import MainProcess
from teho.source.options.table import Option

RANK = 238
SEVERITY = "warning"
THRESHOLDS = {
    "used_percent": chosen(
        10.0, "%", "a GPU that was busy for less of the run does not take much of the time"
    ),
    "busy_percent": chosen(
        50.0,
        "%",
        "while the program works: if the GPU is idle for longer, something else takes the time",
    ),
    "narrow_percent": Threshold(
        50.0,
        "%",
        "DCGM's manual: if the SM activity is below 50 %, the program probably uses the GPU badly",
    ),
}


def judge(context: ProgramContext) -> Findings:
    """Find options in the source whose effect fits what the GPU did."""
    for main in context.mains[:1]:
        use = context.gpu_use(main) if context.gpus_beside(main) else None
        options = list(options_on_gpus(main)) if use is not None else []
        if use is None or not options or not main.process.may_use_device:
            continue
        means = [context.mean(gpu, "gpu_busy_percent") for gpu in context.gpus_beside(main)]
        mean = max((one for one in means if one is not None), default=0.0)
        for option, places in options:
            shown = _shown(context, main, option, mean)
            if shown is None:
                continue
            first = places[0].at
            yield context.finding(
                Severity.WARNING,
                f"`{first.short_text}` at {first.short_place} {option.why}. {shown[0]}",
                evidence=(
                    shown[1],
                    Evidence("option or call", f"{first.short_place}  {first.short_text}"),
                ),
                judged_by=[f"{option.gpu}_percent"],
                action=_action(context, main, option, places),
                regain_percent=(option.regain[0] * mean, option.regain[1] * mean),
                certainty=Certainty(option.certainty or "possible"),
            )


def _shown(
    context: ProgramContext, main: MainProcess, option: Option, mean: float
) -> tuple[str, Evidence] | None:
    """Return what the GPU did, if it fits the option: a sentence and its figure."""
    if mean < context.limit("used_percent"):
        return None
    if option.gpu == "used":
        return f"The GPU was busy {mean:.0f} % of the time.", Evidence("GPU busy, mean", mean, "%")
    use = context.gpu_use(main)
    if option.gpu == "busy":
        if use is None or use.busy_percent < context.limit("busy_percent"):
            return None
        sentence = f"The GPU was busy {use.busy_percent:.0f} % of the time{use.during}."
        return sentence, use.evidence
    active = [context.at_work(gpu, "gpu_sm_active_percent") for gpu in context.gpus_beside(main)]
    known = [one for one in active if one is not None]
    if not known or max(known) >= context.limit("narrow_percent"):
        return None
    return (
        f"While the GPU was busy, only {max(known):.0f} % of its multiprocessors had work.",
        Evidence("SM activity while the GPU was busy", max(known), "%"),
    )


def _action(
    context: ProgramContext, main: MainProcess, option: Option, places: Sequence[CostlyOption]
) -> str:
    action = in_words(option.advice, [one.at for one in places], places[0].words)
    if option.certainty == "likely":
        return action
    return (
        f"{action} To see what it saves, run the program with and without this change: `teho "
        f"compare`. {trace_command(context, main)} names the kernels."
    )
