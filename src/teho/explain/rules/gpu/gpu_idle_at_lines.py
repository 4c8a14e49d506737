"""Lines of the program do work on the CPU, or sample by sample, that the GPU could do at once.

The stacks show that the main thread spends much of its time in these lines, and the GPU has little
work. The program's source shows a faster way: one operation on a whole batch instead of a Python
loop over its samples, a conversion of images on the GPU instead of the CPU, or a function of
PyTorch or CuPy instead of one of NumPy or SciPy with arrays that were copied from the GPU. The file
`costly_options.toml` lists these cases.
"""

from __future__ import annotations

from teho.explain.gpu_lines import GpuLines, gpu_lines
from teho.explain.kinds import DEEP_GPU
from teho.explain.nouns import noun_of
from teho.explain.options import OptionTime, in_words
from teho.explain.rule import (
    Certainty,
    Evidence,
    Findings,
    Located,
    ProgramContext,
    Threshold,
    chosen,
)
from teho.explain.shared_thresholds import TEN_SAMPLES
from teho.explain.wording import capital
from teho.model.program import MainProcess

RANK = 237
SEVERITY = "critical, warning"
THRESHOLDS = {
    "busy_percent": chosen(
        80.0,
        "%",
        "as in the rule waits_for_device: above this limit, the GPU has enough work; only if few "
        "of its multiprocessors work, the lines still count",
    ),
    "sm_active_percent": Threshold(
        25.0,
        "%",
        "KempnerPulse, a monitoring tool, reports a GPU that is busy for 40 % of the time or more "
        "and has an SM activity below 25 %",
    ),
    "large_percent": chosen(
        20.0, "%", "lines that take less than 2 s count only above this share of the working time"
    ),
    "large_min_s": TEN_SAMPLES,
    "explains_percent": chosen(
        33.0,
        "%",
        "above this share of the working time, these lines are the main reason why the GPU is "
        "idle, and general advice, such as larger batches, does not fit",
    ),
}
MUTES = (
    *DEEP_GPU,
    "gpu_low_use",
    "gpu_launch_bound",
    "host_bound",
    "waits_for_device",
    "cpu_busy_gpu_idle",
    "batch_small",
    "problem_too_small",
    "copies_from_pageable_memory",
    "python_bound",
    "serial_program",
    "cores_unused",
)
MUTES_BECAUSE = "this finding names the lines because of which the GPU is idle, and what to change"
SAME_LOSS_AS = ("evaluation_long", "option_costly", "known_activity")


def judge(context: ProgramContext) -> Findings:
    """Find lines that leave the GPU idle, in the process that ran longest."""
    for main in context.mains[:1]:
        lines = gpu_lines(context, main)
        if lines is None:
            continue
        context.forget_lacks()
        for time in lines.times:
            yield _found(context, main, lines, time)


def _found(
    context: ProgramContext, main: MainProcess, lines: GpuLines, time: OptionTime
) -> Located:
    option, at, gpu = time.option, time.places[0], lines.gpu
    wall_s = main.process.wall_s
    share = min(100.0, 100 * time.wall_s / lines.working_s)
    of_run = min(100.0, 100 * time.wall_s / wall_s)
    slow = time.lines[0][0] if time.lines else at
    noun = noun_of(at.text)
    is_far = (slow.file, slow.line) != (at.file, at.line) and noun != "loop"
    where = f", mostly at {slow.short_place}" if is_far else ""
    least, most = (part * of_run for part in option.regain)
    if gpu.busy_percent < context.limit("busy_percent") and gpu.idle_percent < most:
        least, most = min(least, gpu.idle_percent / 2), gpu.idle_percent
    return context.lost(
        f"The {noun} `{at.short_text}` at {at.short_place} {option.why.format(**time.words)}. "
        f"{capital(option.what)} took {share:.0f} % of the time{_after(main)}{where}, and the GPU "
        f"was busy only {gpu.busy_percent:.0f} % of the time{gpu.during}.",
        share_percent=share,
        evidence=(
            Evidence("share of the working time spent on these lines", share, "%"),
            Evidence("time spent on these lines", time.wall_s, "s"),
            gpu.evidence,
            Evidence(noun, f"{at.short_place}  {at.short_text}"),
        ),
        action=in_words(option.advice, time.places, time.words),
        judged_by=["large_percent", "busy_percent"],
        regain_percent=(least, most),
        lines=time.lines,
        mutes=lines.percent >= context.limit("explains_percent"),
        certainty=Certainty(option.certainty) if option.certainty else Certainty.LIKELY,
    )


def _after(main: MainProcess) -> str:
    """Return which time counts, to follow `of the time`."""
    return " after the first step" if main.process.progress and main.process.set_up else ""
