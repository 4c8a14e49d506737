"""A call in the program's source makes the work of the GPU slow.

The program starts the work of the GPU and continues. So the stacks only show where it waits for the
result. Teho also searches in the program's source for calls that are known to be slow on a GPU. It
reports such a call only if the values of the GPU show what such a call does to a GPU. Examples are
QR decompositions of many small matrices, `jax.lax.scan` with many small steps, parameters that are
indexed with a tensor, and Fourier transforms of a length with a large prime factor. The file
`gpu_calls.toml` lists the calls.
"""

from __future__ import annotations

from teho.explain.gpu_words import trace_command
from teho.explain.gpu_working import Working, gpu_working
from teho.explain.options import FoundOption, found_of_rule, in_words
from teho.explain.rule import (
    Certainty,
    Evidence,
    Findings,
    Located,
    ProgramContext,
    Threshold,
    chosen,
)
from teho.model.program import Doing, MainProcess
from teho.source.options.table import Option

RANK = 221
SEVERITY = "critical, warning"
THRESHOLDS = {
    "busy_percent_min": chosen(
        10.0, "%", "a GPU that is busy for less than 10 % of a short period has almost no work"
    ),
    "active_percent": chosen(
        15.0,
        "%",
        "kernels of one to a few blocks of threads use at most a few multiprocessors; the small "
        "kernels of usual programs used 17 to 60 % of an NVIDIA H200",
    ),
    "power_percent": chosen(
        25.0,
        "%",
        "used only if the activity of the multiprocessors is not known: three programs with few "
        "threads drew 18 to 20 % of the power limit of an NVIDIA H200, and the others 23 to 100 %",
    ),
    "few_busy_percent": chosen(
        25.0,
        "%",
        "if the GPU is busy for less of the time from its first work to its last, other work than "
        "these kernels takes most of the time",
    ),
    "waited_busy_percent": chosen(
        80.0,
        "%",
        "above this limit, the program starts kernels fast enough, so the kernels themselves are "
        "slow",
    ),
    "busy_percent": Threshold(
        50.0, "%", "as in the rule gpu_low_use: below this limit, the GPU has too little work"
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


def judge(context: ProgramContext) -> Findings:
    """Find the first slow call of the process that ran longest, whose symptoms were measured."""
    for main in context.mains[:1] if context.gpus else ():
        found = found_of_rule(main, context.kind)
        if not found:
            return
        working = gpu_working(context, main, context.limit("busy_percent_min"))
        if working is None:
            return
        shown = [one for one in found if _is_shown(context, main, one, working)]
        # What the stacks show to take the time comes first.
        shown.sort(key=lambda one: -one.seconds)
        for one in shown[:1]:
            context.forget_lacks()
            yield _finding(context, main, one, working)


def _is_shown(
    context: ProgramContext, main: MainProcess, found: FoundOption, working: Working
) -> bool:
    """Return whether the values of the GPU show what a call does to it."""
    symptom = found.option.gpu
    if symptom == "time":
        return context.is_loss(found.seconds, main)
    if not context.is_loss(working.seconds, main):
        return False
    if symptom == "busy":
        return working.busy_percent >= context.limit("busy_percent")
    if not _has_few_threads(context, working):
        return False
    if symptom == "few_in_lines":
        return context.is_loss(found.seconds, main)
    return symptom == "few_threads" or _waited(context, main, working)


def _has_few_threads(context: ProgramContext, working: Working) -> bool:
    """Return whether a GPU was at work with few threads: by its power if nothing else is known."""
    active, power = working.active_percent, working.power_percent
    if working.busy_percent < context.limit("few_busy_percent"):
        return False
    if active is not None:
        return active < context.limit("active_percent")
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
    is_timed = context.is_loss(found.seconds, main)
    share = min(100.0, 100 * (found.seconds if is_timed else working.seconds) / wall_s)
    is_few = option.gpu not in ("busy", "time")
    is_known = is_timed and (working.active_percent is not None or not is_few)
    is_loop = at.text.startswith("for ")
    what = "loop" if is_loop else "line"
    noun = "loop" if is_loop else "expression" if option.gpu == "waited" else "call"
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
    proof = "" if is_known else _proof(context, main, option)
    least, most = option.regain
    return context.lost(
        " ".join(filter(None, sentences)),
        share_percent=share,
        evidence=evidence,
        action=in_words(option.advice, found.places, found.words) + proof,
        regain_percent=(least * share, most * share),
        certainty=Certainty(option.certainty) if is_known or not is_few else Certainty.POSSIBLE,
    )


def _proof(context: ProgramContext, main: MainProcess, option: Option) -> str:
    """Return how a trace shows whether a call is the cause, as the end of an advice."""
    return (
        f" To check this first, use {trace_command(context, main)}: if this is the cause, the list "
        f"of kernels begins with {option.kernels}."
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
