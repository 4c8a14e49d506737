"""A program that is not Python used much of its CPU time in a function that is known to be slow.

Examples are `rand()` in several threads, a critical section in a loop, and `fprintf` of very many
numbers. The file `native_activities.toml` lists the functions and the advice.
"""

from __future__ import annotations

from teho.explain.native import (
    NativeTime,
    NativeUse,
    caller_words,
    label_of,
    native_uses,
    times_of,
    top_line,
)
from teho.explain.rule import Certainty, Evidence, Findings, RuleContext, Severity, chosen
from teho.explain.wording import joined
from teho.model.native import FunctionUse

RANK = 294
SEVERITY = "warning"
THRESHOLDS = {
    "run_percent": chosen(
        10.0, "%", "below this share of the run time, the advice would save little time"
    ),
}
MUTES = ("serial_program", "cores_unused")
MUTES_BECAUSE = "this finding says what the busy core does"
_MOST_PERCENT = 95.0
"""No advice saves the whole run."""
_MOST_CALLERS = 2
_LEAST_OF_CALLERS = 0.2


def judge(context: RuleContext) -> Findings:
    """Find the known activities of each program.

    The samples are of user space. The share of the run time is the share of the samples, times the
    share of the run in which the program ran.
    """
    for use in native_uses(context.run):
        for time in times_of(use.program):
            run_percent = time.share_percent * use.ran_s_percent / 100
            if run_percent < context.limit("run_percent"):
                continue
            texts = _texts(use, time)
            yield context.finding(
                Severity.WARNING,
                time.activity.sentence.format_map(texts),
                evidence=(
                    Evidence("share of the program's CPU time", time.share_percent, "%"),
                    Evidence("share of the run in which the program ran", use.ran_s_percent, "%"),
                    Evidence("number of samples", float(use.program.samples)),
                ),
                action=_filled(time.activity.advice, texts),
                regain_percent=(
                    run_percent * time.activity.regain[0],
                    min(_MOST_PERCENT, run_percent * time.activity.regain[1]),
                ),
                certainty=Certainty(time.activity.certainty),
            )


def _texts(use: NativeUse, time: NativeTime) -> dict[str, str]:
    """Return what the placeholders of an entry are replaced by."""
    first = time.functions[0]
    by_caller: dict[str, list[FunctionUse]] = {}
    for one in time.functions:
        if one.caller:
            by_caller.setdefault(one.caller, []).append(one)
    samples = {name: sum(one.samples for one in uses) for name, uses in by_caller.items()}
    least = _LEAST_OF_CALLERS * sum(one.samples for one in time.functions)
    callers = sorted(
        (name for name in samples if samples[name] >= least), key=lambda n: -samples[n]
    )
    words = [caller_words(name, top_line(by_caller[name])) for name in callers[:_MOST_CALLERS]]
    return {
        "program": use.program.name,
        "function": label_of(first),
        "function_at": caller_words(label_of(first), top_line([first])),
        "file": first.file,
        "share": f"{time.share_percent:.0f}",
        "caller": joined(words or ["its code"]),
    }


def _filled(text: str, texts: dict[str, str]) -> str:
    """Replace the caller in an advice, whose code may have other braces."""
    return text.replace("{caller}", texts["caller"])
