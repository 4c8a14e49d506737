"""A `map` of tf.data processes one element at a time, and the job has more than one core."""

from __future__ import annotations

from teho.explain.kinds import STARVED, input_causes_after
from teho.explain.pipeline import pipeline_of, with_place
from teho.explain.rule import Evidence, Findings, ProgramContext, chosen

RANK = 185
SEVERITY = "critical, warning"
THRESHOLDS = {
    "map_percent": chosen(50.0, "%", "above this limit, `map` does most of the pipeline's work")
}
MUTES = ("serial_program", "cores_unused", *input_causes_after("input_map_serial"), *STARVED)
MUTES_BECAUSE = "this finding says what to change, and how to use the cores"


def judge(context: ProgramContext) -> Findings:
    """Find a pipeline whose work is mostly a `map` without `num_parallel_calls`."""
    waiting = context.waiting()
    pipeline = pipeline_of(waiting) if waiting else None
    if waiting is None or pipeline is None or waiting.cores < 2:
        return
    serial, share = pipeline.one_by_one("map"), pipeline.serial_map_percent
    if not serial or share is None or share < context.limit("map_percent"):
        return
    codes = [with_place(".map(…, num_parallel_calls=tf.data.AUTOTUNE)", call) for call in serial]
    last = (
        ""
        if pipeline.all_of("prefetch")
        else " End the pipeline with `.prefetch(tf.data.AUTOTUNE)`."
    )
    yield context.lost_waiting(
        waiting,
        ": `map` processes one element at a time.",
        evidence=(
            Evidence("share of the pipeline's work that `map` does", share, "%"),
            Evidence("cores", float(waiting.cores), "cores"),
        ),
        action=f"Process several elements at the same time: {' and '.join(codes)}.{last}",
        regain_percent=context.by_workers(waiting, waiting.cores),
    )
