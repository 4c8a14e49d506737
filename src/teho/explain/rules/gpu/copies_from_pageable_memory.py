"""The program copies batches to an idle GPU from memory that is not pinned."""

from __future__ import annotations

from teho.explain.loader_words import loader_call
from teho.explain.rule import Evidence, Findings, ProgramContext, Threshold
from teho.model.program import Doing, MainProcess
from teho.model.watched import Loader

RANK = 220
SEVERITY = "critical, warning"
THRESHOLDS: dict[str, Threshold] = {}
MUTES = ("gpu_low_use", "batch_small")
MUTES_BECAUSE = "this finding says what the program waits for, and the GPU is idle during this time"


def judge(context: ProgramContext) -> Findings:
    """Check how long a main thread copied to a GPU, from a loader without pinned memory."""
    for main, copying in context.losses(Doing.COPYING) if context.gpus else ():
        loader = main.feed.loader
        if loader is None or loader.settings.get("pin_memory", True):
            continue
        gpu = context.gpu_use(main)
        if gpu is None:
            continue
        # A copy from such memory begins when all earlier work on the GPU is done: most of its
        # time may be waiting for a GPU that works.
        share = min(copying, gpu.idle_percent)
        if not context.is_loss(share / 100 * main.process.wall_s, main):
            continue
        context.forget_lacks()
        yield context.lost(
            f"The program spent {copying:.0f} % of the time on copies to the GPU. The batches "
            "are not in pinned memory, so the program has to wait for each copy.",
            share_percent=share,
            evidence=(
                Evidence("time spent on copies to the GPU", copying, "%"),
                gpu.evidence,
            ),
            action=(
                "Put the batches into pinned memory with "
                f"{loader_call(loader, **_settings(context, main, loader))}, and copy them while "
                'the program computes: `x.to("cuda", non_blocking=True)`.'
            ),
            regain_percent=(share / 2, share),
            lines=main.lines(Doing.COPYING),
        )
        return


def _settings(context: ProgramContext, main: MainProcess, loader: Loader) -> dict[str, object]:
    """Return the settings that help: without workers, the main thread itself pins each batch.

    On an H200, this made a program with batches of 256 MiB slower (docs/gpu.md).
    """
    if loader.settings.get("num_workers") != 0:
        return {"pin_memory": True}
    workers = context.best_workers(context.waiting_of(main, loader))
    return {"num_workers": workers, "pin_memory": True}
