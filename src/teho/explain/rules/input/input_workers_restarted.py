"""Workers are started again for each epoch."""

from __future__ import annotations

from teho.explain.program_context import ProgramContext, in_loader, waited
from teho.explain.rule import STARVED, Mutes
from teho.model.finding import Abstention, Evidence, Finding, Threshold
from teho.model.program import Doing

__all__ = ["KIND", "MUTES", "RANK", "SAYS", "SEVERITY", "THRESHOLDS", "judge"]

KIND = "input_workers_restarted"
RANK = 140
SAYS = "workers are started again for each short epoch"
SEVERITY = "critical, warning"
THRESHOLDS = {
    "epochs_min": Threshold(
        3.0,
        "epochs",
        "Teho's own choice: the first start is not a fault, and one more may be a test",
    ),
    "first_batches_percent": Threshold(50.0, "%", "Teho's own choice: most of the waiting"),
}
MUTES = Mutes(
    (
        "input_skewed",
        "input_too_few_workers",
        "input_too_many_workers",
        "input_slow",
        *STARVED,
    ),
    because="the waiting is for their start",
)


def judge(context: ProgramContext) -> list[Finding] | Abstention:
    """Look at loaders whose first batches, one an epoch, are what is waited for."""
    waiting = context.waiting()
    loader = waiting.main.feed.loader if waiting else None
    if waiting is None or loader is None or waiting.workers == 0:
        return []
    # A loader that keeps its workers starts them again where it is itself made again.
    kept = waiting.settings.get("persistent_workers")
    starts = min(loader.made, loader.epochs) if kept else loader.epochs
    if starts < max(1, context.limit("epochs_min")):
        return []
    # The first batch of an epoch has to be loaded, too, whoever does.
    loading_s = loader.epochs * waiting.work_s / max(1, loader.batches)
    first = 100 * min(1.0, max(0.0, loader.first_s - loading_s) / waiting.wait_s)
    if first < context.limit("first_batches_percent"):
        return []
    lost_percent = waiting.share_percent * first / 100
    return [
        context.lost(
            f"{waited(waiting)}, most of it for workers to start, {starts} times.",
            share_percent=waiting.share_percent,
            evidence=(
                Evidence("waiting for data", waiting.share_percent, "%"),
                Evidence("of that, until workers had started", first, "%"),
                Evidence("first batch of an epoch, mean", loader.first_s / loader.epochs, "s"),
            ),
            judged_by=["epochs_min", "first_batches_percent"],
            action=(
                f"Keep them: {in_loader(waiting, 'persistent_workers=True')}, and make the loader "
                "once, before the epochs."
            ),
            regain_percent=(lost_percent / 2, lost_percent),
            lines=waiting.main.lines(Doing.LOADING),
        )
    ]
