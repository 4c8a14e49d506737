"""More workers load the data than there are cores."""

from __future__ import annotations

from collections.abc import Iterator

from teho.explain.program_context import ProgramContext, loader_call
from teho.explain.rule import STARVED, Mutes
from teho.model.finding import Evidence, Finding, Threshold

RANK = 170
SEVERITY = "critical, warning"
THRESHOLDS = {
    "without_core_percent": Threshold(
        10.0, "%", "threshold of lost_percent: a warning if a tenth of the time is lost"
    ),
    "mostly_waiting_percent": Threshold(
        50.0, "%", "same as SageMaker's profiler rules: more than 50 % of the time"
    ),
}
MUTES = Mutes(
    ("input_too_few_workers", "input_slow", "too_many_threads", *STARVED),
    because="the workers explain the high number of threads",
)


def judge(context: ProgramContext) -> Iterator[Finding]:
    """Find more workers than cores, if the program waits for data or for a core."""
    for main in context.mains:
        loader, cores = main.feed.loader, context.cores_of(main)
        workers = loader.settings.get("num_workers") or 0 if loader else 0
        without_core_s = main.process.wait_for_core_s or 0.0
        lost_s = max(without_core_s, main.feed.wait_s)
        if loader is None or workers <= cores or not context.is_loss(lost_s, main):
            continue
        # Workers that wait for a network may be more than the cores.
        crowded = main.feed.workers_without_core_percent or 0.0
        lack_cores = crowded >= context.limit("without_core_percent")
        if not lack_cores and not context.is_loss(without_core_s, main):
            continue
        wall_s = main.process.wall_s
        waiting = context.waiting_of(main, loader)
        # If a program mostly waits for data, the workers can use its core.
        is_waiting = waiting.share_percent >= context.limit("mostly_waiting_percent")
        few = cores if is_waiting else max(1, cores - 1)
        advice = "Use at most one worker per core" if is_waiting else "Leave a core to the program"
        yield context.lost(
            f"The data loader has {workers} workers on {cores} core{'s' if cores > 1 else ''}: "
            "they take turns with each other and with the program.",
            share_percent=100 * lost_s / wall_s,
            evidence=(
                Evidence("waiting for data", waiting.share_percent, "%"),
                Evidence("waiting for a core", 100 * without_core_s / wall_s, "%"),
                Evidence("workers waiting for a core", crowded, "%"),
                Evidence("workers", float(workers)),
                Evidence("cores", float(cores), "cores"),
            ),
            action=f"{advice}: {loader_call(waiting, f'num_workers={few}')}.",
            judged_by=["without_core_percent", "mostly_waiting_percent"],
            regain_percent=(0.0, 100 * lost_s / wall_s),
            lines=main.feed.lines,
        )
        return
