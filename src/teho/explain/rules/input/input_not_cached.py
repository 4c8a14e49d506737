"""A pipeline of tf.data repeats its work in each epoch, and the result would fit in memory."""

from __future__ import annotations

from teho.explain.kinds import STARVED
from teho.explain.pipeline import (
    early_cache,
    moved_cache,
    pipeline_of,
    returns_the_same,
    with_place,
)
from teho.explain.program_context import data_bytes
from teho.explain.rule import Certainty, Evidence, Findings, ProgramContext, chosen
from teho.units import format_bytes

RANK = 188
SEVERITY = "critical, warning"
THRESHOLDS = {
    "map_percent": chosen(50.0, "%", "above this limit, `map` does most of the pipeline's work"),
    "epochs_min": chosen(2.0, "epochs", "a cache saves work only from the second epoch on"),
}
MUTES = ("input_slow", "input_skewed", "serial_program", "cores_unused", *STARVED)
MUTES_BECAUSE = "the pipeline does not need to do this work after the first epoch"


def judge(context: ProgramContext) -> Findings:
    """Find a pipeline whose `map` returns the same in each epoch, without a `cache`."""
    waiting = context.waiting()
    pipeline = pipeline_of(waiting) if waiting else None
    if waiting is None or pipeline is None or not returns_the_same(pipeline):
        return
    share, loader, early = pipeline.map_percent, waiting.loader, early_cache(pipeline)
    is_of_map = share is not None and share >= context.limit("map_percent")
    # The program wants to keep its elements: it is enough that no other stage has the work.
    is_unreported = early is not None and pipeline.lacks_work
    if share is None or not (is_of_map or is_unreported):
        return
    size, free = data_bytes(waiting.main), context.free_bytes(waiting.main)
    if loader.epochs < context.limit("epochs_min") or size is None or free is None or size > free:
        return
    last = pipeline.all_of("map")[-1]
    add = f"Keep the elements in memory: add {with_place('.cache()', last)}, after `map`."
    reason = " `cache` is before `map`, so it keeps the elements without this work."
    yield context.lost_waiting(
        waiting,
        f": `map` does the same work again in each epoch.{reason if early else ''}",
        evidence=(
            Evidence("share of the pipeline's work that `map` does", share, "%")
            if is_of_map
            else Evidence("calls of `cache` before `map`", 1.0),
            Evidence("epochs", float(loader.epochs)),
            Evidence("size of all elements", float(size), "bytes"),
        ),
        action=(
            f"{moved_cache(pipeline) or add} The elements need {format_bytes(size)} of memory, and "
            f"{format_bytes(free)} stayed free."
        ),
        regain_percent=(waiting.share_percent / 2, waiting.share_percent),
        certainty=None if is_of_map else Certainty.LIKELY,
    )
