"""The GPU was busy nearly all of the time, and nothing else says with what."""

from __future__ import annotations

from teho.explain.gpu_words import trace_command
from teho.explain.rule import Findings, ProgramContext, Severity, chosen

RANK = 575
SEVERITY = "remark"
THRESHOLDS = {
    "busy_percent": chosen(
        90.0, "%", "a GPU that is idle for less than 10 % of the time waits for nothing else"
    ),
}
_PROFILED = ("torch", "jax")
"""Libraries whose profiler `teho profile` starts."""


def judge(context: ProgramContext) -> Findings:
    """Find a program whose speed depends on the kernels, of which a recording knows only the sum.

    A busy GPU may still use slow kernels: a trace has their names and the lines that launch them.
    """
    for main in context.mains if context.gpus else ():
        is_profiled = any(one in main.process.libraries for one in _PROFILED)
        gpu = context.gpu_use(main) if is_profiled else None
        if gpu is None or not gpu.during or gpu.busy_percent < context.limit("busy_percent"):
            continue
        if any(use.file for use in main.process.profiled):
            continue  # a trace was made: the report has what it shows
        context.forget_lacks()
        yield context.finding(
            Severity.REMARK,
            f"The GPU was busy {gpu.busy_percent:.0f} % of the time{gpu.during}, so its kernels "
            "(functions on the GPU) decide the speed of the program.",
            evidence=(gpu.evidence,),
            action=(
                f"{trace_command(context, main)} shows which kernels take the time, which lines "
                "launch them, and whether they use the tensor cores."
            ),
        )
        return
    context.forget_lacks()
