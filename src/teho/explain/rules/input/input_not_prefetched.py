"""A pipeline of tf.data works only while the program waits for a batch."""

from __future__ import annotations

from teho.explain.kinds import STARVED, input_causes_after
from teho.explain.pipeline import pipeline_of, with_place
from teho.explain.rule import Evidence, Findings, ProgramContext, Threshold

RANK = 187
SEVERITY = "critical, warning"
THRESHOLDS: dict[str, Threshold] = {}
MUTES = ("serial_program", "cores_unused", *input_causes_after("input_not_prefetched"), *STARVED)
MUTES_BECAUSE = "this finding says what to change, and how to use the cores"


def judge(context: ProgramContext) -> Findings:
    """Find a pipeline in which TensorFlow reports no stage that loads batches in advance."""
    waiting = context.waiting()
    pipeline = pipeline_of(waiting) if waiting else None
    if waiting is None or pipeline is None or pipeline.is_ahead is not False:
        return
    # At most, the pipeline does all of its work while the program does the rest.
    most = min(waiting.share_percent, 100.0 - waiting.share_percent)
    last = pipeline.calls[-1] if pipeline.calls else {}
    yield context.lost_waiting(
        waiting,
        ": the pipeline does not load the next batch while the program computes.",
        evidence=(Evidence("stages that load batches in advance", 0.0),),
        action=(
            "Let the pipeline load the next batch while the program computes: add "
            f"{with_place('.prefetch(tf.data.AUTOTUNE)', last)}, as the last call of the pipeline."
        ),
        regain_percent=(0.0, most),
    )
