"""An `interleave` of tf.data reads one file at a time."""

from __future__ import annotations

from teho.explain.kinds import STARVED, input_causes_after
from teho.explain.pipeline import pipeline_of, with_place
from teho.explain.rule import Evidence, Findings, ProgramContext, chosen

RANK = 184
SEVERITY = "critical, warning"
THRESHOLDS = {
    "files_percent": chosen(
        50.0, "%", "above this limit, the program spends most of its waiting time on reading files"
    )
}
MUTES = ("serial_program", "cores_unused", *input_causes_after("input_files_one_by_one"), *STARVED)
MUTES_BECAUSE = "this finding says what limits the speed: the files are read one by one"


def judge(context: ProgramContext) -> Findings:
    """Find a pipeline that mostly reads files, in an `interleave` without `num_parallel_calls`."""
    waiting = context.waiting()
    pipeline = pipeline_of(waiting) if waiting else None
    if waiting is None or pipeline is None:
        return
    serial, share = pipeline.one_by_one("interleave"), pipeline.serial_files_percent
    if not serial or share is None or share < context.limit("files_percent"):
        return
    code = ".interleave(…, num_parallel_calls=tf.data.AUTOTUNE)"
    yield context.lost_waiting(
        waiting,
        ": `interleave` reads one file at a time.",
        evidence=(Evidence("share of the waiting time spent on reading files", share, "%"),),
        action=(
            "Read several files at the same time: "
            f"{' and '.join(with_place(code, call) for call in serial)}. If the files are small, "
            "pack the records into fewer files before the job."
        ),
        regain_percent=(0.0, waiting.share_percent),
    )
