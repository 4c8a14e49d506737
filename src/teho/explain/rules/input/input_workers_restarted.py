"""Workers are started again for each short epoch."""

from __future__ import annotations

from teho.explain.kinds import STARVED
from teho.explain.loader_words import loader_call
from teho.explain.rule import Evidence, Findings, ProgramContext, chosen
from teho.model.program import Doing, MainProcess

RANK = 140
SEVERITY = "critical, warning"
THRESHOLDS = {
    "epochs_min": chosen(
        3.0,
        "epochs",
        "the workers have to start once for training, and perhaps once more for a test; a "
        "third start is not needed",
    ),
    "first_batches_percent": chosen(
        50.0,
        "%",
        "above this limit, the program waits mostly for the first batch of each epoch, while the "
        "workers start. This finding then replaces other findings about the loader",
    ),
}
MUTES = ("input_skewed", "input_too_few_workers", "input_too_many_workers", "input_slow", *STARVED)
MUTES_BECAUSE = "this finding says what the program waits for: workers that start"


def judge(context: ProgramContext) -> Findings:
    """Find loaders whose first batches, one per epoch, take most of the waiting."""
    waiting = context.waiting()
    # Only PyTorch has an option to keep its workers.
    if waiting is None or waiting.workers == 0 or waiting.loader.library != "torch":
        return
    loader = waiting.loader
    # A loader that keeps its workers starts them again only if the loader is created again.
    kept = waiting.settings.get("persistent_workers")
    starts = min(loader.made, loader.epochs) if kept else loader.epochs
    if starts < max(1, context.limit("epochs_min")):
        return
    # The first batch of an epoch has to be loaded in any case.
    loading_s = loader.epochs * waiting.work_s / max(1, loader.batches)
    first_s = max(0.0, loader.first_s - loading_s)
    started_s = min(waiting.wait_s, first_s + _stopped_s(waiting.main))
    first = 100 * started_s / waiting.wait_s
    is_most = first >= context.limit("first_batches_percent")
    # In a short run, all of the waiting is long enough to judge, but a part of it may not be.
    share = 100 * started_s / context.work_s(waiting.main)
    is_large = is_most and share >= context.limit("lost_percent")
    if not is_large and not context.is_loss(started_s, waiting.main):
        return
    lost_percent = waiting.share_percent * first / 100
    yield context.lost_waiting(
        waiting,
        f", {'mostly' if is_most else 'partly'} because workers were started {starts} times.",
        evidence=(
            Evidence("share of the waiting time for starting and stopping workers", first, "%"),
            Evidence(
                "mean waiting time for the first batch of an epoch",
                loader.first_s / loader.epochs,
                "s",
            ),
        ),
        action=(
            f"Keep the workers for all epochs: {loader_call(loader, persistent_workers=True)}. "
            "Create the loader once, before the first epoch."
        ),
        regain_percent=(lost_percent / 2, lost_percent),
        lines=waiting.main.lines(Doing.LOADING),
        mutes=is_most,
    )


def _stopped_s(main: MainProcess) -> float:
    """Return the time in s for which a process waited for the end of workers, after an epoch."""
    return sum(
        seen.wall_s
        for seen in main.process.stacks
        if any(frame.function.endswith("._shutdown_workers") for frame in seen.frames)
    )
