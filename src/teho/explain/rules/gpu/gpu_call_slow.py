"""A call or an option in the program's source makes the work of the GPU slow.

The program starts the work of the GPU and continues. So the stacks only show where it waits for the
result. Teho also searches in the program's source for calls and options that are known to be slow
on a GPU. It reports them only if the values of the GPU show what they do to a GPU. Examples of
calls are QR decompositions of many small matrices, `jax.lax.scan` with many small steps, parameters
that are indexed with a tensor, and Fourier transforms of a length with a large prime factor.
Examples of options are deterministic algorithms, `CUDA_LAUNCH_BLOCKING=1`, and attention without
fused kernels. The files `gpu_calls.toml` and `costly_options.toml` (key `gpu`) list them. What may
save nothing, such as most options, is a warning at most, and mutes no other finding.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from teho.explain.gpu_words import trace_command
from teho.explain.gpu_working import Working, gpu_working
from teho.explain.nouns import noun_of
from teho.explain.options import FoundOption, in_words, options_on_gpus
from teho.explain.rule import (
    Certainty,
    Evidence,
    Findings,
    Located,
    ProgramContext,
    Severity,
    Threshold,
    chosen,
)
from teho.model.program import Doing, MainProcess
from teho.source.options.table import Option

RANK = 221
SEVERITY = "critical, warning"
THRESHOLDS = {
    "used_percent": chosen(
        10.0, "%", "a GPU that is busy for less than 10 % of a period has almost no work"
    ),
    "busy_percent": Threshold(
        50.0, "%", "as in the rule gpu_low_use: below this limit, the GPU has too little work"
    ),
    "few_busy_percent": chosen(
        25.0,
        "%",
        "if the GPU is busy for less of the time from its first work to its last, other work than "
        "kernels with few threads takes most of the time",
    ),
    "active_percent": chosen(
        15.0,
        "%",
        "kernels of one to a few blocks of threads use at most a few multiprocessors; the small "
        "kernels of usual programs used 17 to 60 % of an NVIDIA H200",
    ),
    "narrow_percent": Threshold(
        50.0,
        "%",
        "DCGM's manual: if the SM activity is below 50 %, the program probably uses the GPU badly; "
        "used only for options that change some of the kernels, and not all",
    ),
    "power_percent": chosen(
        25.0,
        "%",
        "used only if the activity of the multiprocessors is not known: three programs with few "
        "threads drew 18 to 20 % of the power limit of an NVIDIA H200, and the others 23 to 100 %",
    ),
    "waited_busy_percent": chosen(
        80.0,
        "%",
        "above this limit, the program starts kernels fast enough, so the kernels themselves are "
        "slow",
    ),
    "starting_percent": chosen(
        30.0,
        "%",
        "if Python code takes more of the time in which the GPU works, the GPU may wait for this "
        "code",
    ),
}
MUTES = (
    "gpu_low_use",
    "gpu_sm_low",
    "gpu_low_occupancy",
    "gpu_launch_bound",
    "gpu_tensor_cores_idle",
    "gpu_slow_fp64",
    "gpu_decides_speed",
    "waits_for_device",
    "host_bound",
    "cpu_busy_gpu_idle",
    "problem_too_small",
    "batch_small",
    "python_bound",
)
MUTES_BECAUSE = "this finding names the call that makes the work of the GPU slow"

_FEW = ("few_busy_percent", "active_percent", "power_percent")
_JUDGED_BY: Mapping[str, tuple[str, ...]] = {
    "used": ("used_percent",),
    "busy": ("busy_percent",),
    "narrow": ("few_busy_percent", "narrow_percent", "power_percent"),
    "few_threads": _FEW,
    "few_in_lines": _FEW,
    "waited": (*_FEW, "waited_busy_percent", "starting_percent"),
    "time": (),
}
"""The thresholds of each symptom, the key `gpu` of the tables."""


def judge(context: ProgramContext) -> Findings:
    """Find what makes the GPU slow, and whose symptoms were measured, in the longest process.

    Of the calls that explain the loss, only the first one counts: all explain the same values.
    """
    for main in context.mains[:1]:
        found = options_on_gpus(main) if context.gpus_beside(main) else []
        working = gpu_working(context, main, context.limit("used_percent")) if found else None
        if working is None:
            continue
        shown = [one for one in found if _is_shown(context, main, one, working)]
        if shown:
            context.forget_lacks()
        # What the stacks show to take the time comes first.
        causes = sorted(filter(_explains, shown), key=lambda one: -one.seconds)
        for one in (*causes[:1], *(one for one in shown if not _explains(one))):
            yield _finding(context, main, one, working)


def _explains(found: FoundOption) -> bool:
    """Return whether it explains what the GPU shows; an option that may save nothing does not."""
    return found.option.regain[0] > 0


def _is_shown(
    context: ProgramContext, main: MainProcess, found: FoundOption, working: Working
) -> bool:
    """Return whether the values of the GPU show what a call or an option does to it."""
    symptom, busy = found.option.gpu, working.busy_percent
    if symptom == "time":
        return context.is_loss(found.seconds, main)
    if not (main.process.may_use_device and context.is_loss(working.seconds, main)):
        return False
    if symptom == "used":
        return busy >= context.limit("used_percent")
    if symptom == "busy":
        return busy >= context.limit("busy_percent")
    if symptom == "narrow":
        return _has_few_threads(context, working, context.limit("narrow_percent"))
    if not _has_few_threads(context, working, context.limit("active_percent")):
        return False
    if symptom == "few_in_lines":
        return context.is_loss(found.seconds, main)
    return symptom == "few_threads" or _waited(context, main, working)


def _has_few_threads(context: ProgramContext, working: Working, most_percent: float) -> bool:
    """Return whether a GPU was at work with few threads: by its power if nothing else is known."""
    active, power = working.active_percent, working.power_percent
    if working.busy_percent < context.limit("few_busy_percent"):
        return False
    if active is not None:
        return active < most_percent
    return power is not None and power < context.limit("power_percent")


def _waited(context: ProgramContext, main: MainProcess, working: Working) -> bool:
    """Return whether the program mostly waited for a busy GPU, and did not start kernels."""
    work_s = min(working.seconds, main.process.wall_s)
    starting_percent = 100 * main.seconds(Doing.PYTHON) / work_s
    is_busy = working.busy_percent >= context.limit("waited_busy_percent")
    return is_busy and starting_percent <= context.limit("starting_percent")


def _finding(
    context: ProgramContext, main: MainProcess, found: FoundOption, working: Working
) -> Located:
    option, at, wall_s = found.option, found.places[0], main.process.wall_s
    explains, is_timed = _explains(found), context.is_loss(found.seconds, main)
    share = min(100.0, 100 * (found.seconds if is_timed else working.seconds) / wall_s)
    if not (is_timed or explains):
        share *= working.busy_percent / 100  # an option costs time only while the GPU is busy
    is_few = "power_percent" in _JUDGED_BY[option.gpu]
    is_known = is_timed and (working.active_percent is not None or not is_few)
    certainty = Certainty(option.certainty) if is_known or not is_few else Certainty.POSSIBLE
    is_proven = is_known or certainty is Certainty.LIKELY
    noun = noun_of(at.text)
    what = "loop" if noun == "loop" else "line"
    sentences = [
        f"The {noun} `{at.short_text}` at {at.short_place} {option.why.format(**found.words)}.",
        f"This {what} took {share:.0f} % of the run time." if is_timed else "",
        _symptom(working, is_few=is_few),
    ]
    evidence = [
        Evidence(f"time of this {what}" if is_timed else "time with work on the GPU", share, "%"),
        Evidence("GPU busy during its work", working.busy_percent, "%"),
    ]
    if working.active_percent is not None:
        label = "SM activity while the GPU was busy"
        evidence.append(Evidence(label, working.active_percent, "%"))
    evidence.append(Evidence(noun, f"{at.short_place}  {at.short_text}"))
    proof = "" if is_proven else _proof(context, main, option)
    least, most = option.regain
    finding = context.lost(
        " ".join(filter(None, sentences)),
        share_percent=share,
        evidence=evidence,
        action=in_words(option.advice, found.places, found.words) + proof,
        judged_by=_JUDGED_BY[option.gpu],
        regain_percent=(least * share, most * share),
        mutes=explains,
        certainty=certainty,
    )
    return finding if explains else msgspec.structs.replace(finding, severity=Severity.WARNING)


def _proof(context: ProgramContext, main: MainProcess, option: Option) -> str:
    """Return how to find out whether a call or an option is the cause, as the end of an advice."""
    trace = trace_command(context, main)
    if option.kernels:
        return (
            f" To check this first, use {trace}: if this is the cause, the list of kernels begins "
            f"with {option.kernels}."
        )
    return (
        " To see what it saves, run the program with and without this change: `teho compare`. "
        f"{trace} names the kernels."
    )


def _symptom(working: Working, *, is_few: bool) -> str:
    """Return what the values of the GPU show, as a sentence."""
    if is_few and working.active_percent is not None:
        return (
            f"While it worked, the GPU used only {working.active_percent:.1f} % of its "
            "multiprocessors (computing units)."
        )
    if is_few and working.power_percent is not None:
        percent = working.power_percent
        return f"While it worked, the GPU drew only {percent:.0f} % of its power limit."
    return (
        f"From its first work to its last, the GPU was busy {working.busy_percent:.0f} % of the "
        "time."
    )
