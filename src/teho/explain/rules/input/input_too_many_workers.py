"""The data loader has more workers than the program has cores."""

from __future__ import annotations

from teho.explain.kinds import STARVED
from teho.explain.loader_words import loader_call
from teho.explain.rule import Evidence, Findings, ProgramContext, Threshold
from teho.explain.shared_thresholds import MOST_OF_THE_TIME

RANK = 170
SEVERITY = "critical, warning"
THRESHOLDS = {
    "without_core_percent": Threshold(
        10.0,
        "%",
        "the same share as the threshold lost_percent, above which Teho reports waiting for data",
    ),
    "mostly_waiting_percent": MOST_OF_THE_TIME,
}
MUTES = ("input_too_few_workers", "input_slow", "too_many_threads", *STARVED)
MUTES_BECAUSE = "too many workers also explain why the program has too many threads"


def judge(context: ProgramContext) -> Findings:
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
        advice = "Leave one core for the program"
        if is_waiting:
            advice = "Use at most one worker per core"
        yield context.lost(
            f"The data loader has {workers} workers on {cores} core{'s' if cores > 1 else ''}: "
            "the workers compete for the cores with each other and with the program.",
            share_percent=100 * lost_s / wall_s,
            evidence=(
                Evidence("waiting for data", waiting.share_percent, "%"),
                Evidence(
                    "time that the program waited for a core", 100 * without_core_s / wall_s, "%"
                ),
                Evidence("time that workers waited for a core", crowded, "%"),
                Evidence("workers", float(workers)),
                Evidence("cores", float(cores), "cores"),
            ),
            action=f"{advice}: {loader_call(loader, num_workers=few)}.",
            regain_percent=(0.0, 100 * lost_s / wall_s),
            lines=main.feed.lines,
        )
        return
