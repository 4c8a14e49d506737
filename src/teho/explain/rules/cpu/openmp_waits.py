"""OpenMP threads use CPU time to wait for other threads.

At the end of a parallel loop, a thread that finishes early waits for the others. For some time, it
waits in a busy loop. A function of the OpenMP library is then running.
"""

from __future__ import annotations

from typing import NamedTuple

from teho.explain.cores import cores_of_others
from teho.explain.native import caller_words, label_of, native_uses, top_line
from teho.explain.rule import Certainty, Evidence, Findings, RuleContext, Severity, chosen
from teho.model.native import FunctionUse, NativeProgram
from teho.model.summary import NodeSummary
from teho.patterns import lazy_pattern

RANK = 453
SEVERITY = "warning"
CERTAINTY = Certainty.LIKELY
THRESHOLDS = {
    "waited_percent": chosen(
        20.0, "%", "in healthy programs, threads with equal work wait less, even on a busy node"
    ),
    "run_percent": chosen(
        10.0, "%", "below this share of the run time, the advice would save little time"
    ),
    "taken_percent": chosen(
        10.0,
        "%",
        "if other processes use the cores, a thread waits for a thread that has no core. In a "
        "healthy program on two cores with other work, threads waited for 45 % of their CPU time",
    ),
}
MUTES = ("openmp_uneven", "serial_program", "cores_unused")
MUTES_BECAUSE = "this finding says which threads waited"

_LIBRARIES = lazy_pattern(r"lib(gomp|omp5?|iomp5|nvomp)\.so.*")
"""OpenMP of GCC, LLVM, Intel and NVIDIA."""
_WAITS = lazy_pattern(
    r"GOMP_(parallel\w*|barrier\w*|loop_end|sections_end|single\w*|taskwait\w*|taskgroup_end)"
    r"|gomp_\w*(barrier|wait|thread_start)\w*|do_(wait|spin)"
    r"|__kmpc_(barrier|fork_call|reduce\w*|single)|__kmp_\w*(barrier|wait|launch|release)\w*"
)
_UNNAMED = lazy_pattern(r"\+0x")
_REGION = lazy_pattern(r"\._omp_fn\.|\.omp_outlined|\.DIR\.OMP\.|\.extracted")
_MORE = 2.0
"""A group of threads waited more than another group if its share is this much larger."""
_MOSTLY = 0.5


class _Waits(NamedTuple):
    """Shares of the samples of each group of threads, in %."""

    all_percent: float
    main_percent: float
    others_percent: float


def judge(context: RuleContext) -> Findings:
    """Compare the time in waiting functions of the main threads with that of the other threads."""
    for use in native_uses(context.run):
        program = use.program
        if program.is_installed or program.threads <= 1 or program.samples == program.main_samples:
            continue
        node = next((one for one in context.summary.nodes if one.name == use.node.name), None)
        if node is None or not _has_its_cores(context, node):
            continue
        waits = _waits(program)
        run_percent = waits.all_percent * use.ran_s_percent / 100
        waited, limit = waits.all_percent, context.limit("waited_percent")
        if waited < limit or run_percent < context.limit("run_percent"):
            continue
        yield context.finding(
            Severity.WARNING,
            f"The OpenMP threads of `{program.name}` used {waited:.0f} % of their CPU "
            f"time to wait for each other{_who(waits)}.",
            evidence=(
                Evidence("waiting of all threads", waited, "%"),
                Evidence("waiting of the main thread", waits.main_percent, "%"),
                Evidence("waiting of the other threads", waits.others_percent, "%"),
            ),
            action=_action(program, waits),
            subjects=[node],
            regain_percent=(run_percent / 3, run_percent),
        )


def _has_its_cores(context: RuleContext, node: NodeSummary) -> bool:
    """Return whether other processes left the cores to the program, as far as is known."""
    others = cores_of_others(context.run, node)
    if others is None:
        return False
    return others <= context.limit("taken_percent") / 100 * node.cores


def _is_wait(use: FunctionUse) -> bool:
    if not _LIBRARIES.fullmatch(use.file):
        return False
    return bool(
        _WAITS.fullmatch(use.function) or (not use.caller and _UNNAMED.search(use.function))
    )


def _waits(program: NativeProgram) -> _Waits:
    waits = [one for one in program.functions if _is_wait(one)]
    waited = sum(one.samples for one in waits)
    main = sum(one.main_samples for one in waits)
    others = program.samples - program.main_samples
    return _Waits(
        100 * waited / program.samples,
        100 * main / max(1, program.main_samples),
        100 * (waited - main) / others,
    )


def _who(waits: _Waits) -> str:
    if waits.others_percent >= _MORE * waits.main_percent:
        return ": the main thread worked longer than the others"
    if waits.main_percent >= _MORE * waits.others_percent:
        return ": the main thread waited for the others"
    return ""


def _action(program: NativeProgram, waits: _Waits) -> str:
    uneven = (
        "add `schedule(dynamic, 16)` to the `#pragma omp for` of the loop, so that a thread that "
        "finishes early takes more iterations"
    )
    busy = [one for one in program.functions if not _is_wait(one) and one.main_samples]
    most = max(busy, key=lambda one: one.main_samples, default=None)
    if waits.main_percent >= _MORE * waits.others_percent or most is None:
        return f"If the iterations of the parallel loop take different times, {uneven}."
    place, line = most.caller or most.function, top_line([most])
    if waits.others_percent >= _MORE * waits.main_percent:
        worked = sum(one.main_samples for one in busy)
        if most.main_samples >= _MOSTLY * worked and not _REGION.search(place):
            called = f", called by {caller_words(most.caller, line)}" if most.caller else ""
            return (
                f"Meanwhile, the main thread was mostly in `{label_of(most)}`{called}. If this "
                "code is outside of parallel loops, run it in parallel too. If it is called in a "
                f"parallel loop, {uneven}."
            )
        if _REGION.search(place):
            return f"In {caller_words(place, line)}, {uneven}."
    return (
        "If the program has many short parallel loops, put several loops into one "
        "`#pragma omp parallel`, and add `nowait` to each `#pragma omp for` whose results the next "
        f"loop does not need. If the iterations of a loop take different times, {uneven}."
    )
