"""The program waits for its data, and no other rule says why."""

from __future__ import annotations

from collections.abc import Sequence

from teho.explain.activities import ActivityKind, activity_times
from teho.explain.kinds import STARVED
from teho.explain.pipeline import busiest_stage, pipeline_of
from teho.explain.program_context import Waiting
from teho.explain.rule import Evidence, Findings, ProgramContext, chosen
from teho.launchers.registry import launchers
from teho.model.missing import Missing, Reason

RANK = 200
SEVERITY = "critical, warning"
THRESHOLDS = {
    "generator_percent": chosen(
        50.0,
        "%",
        "above this limit, a Python generator does most of the work of the pipeline",
    ),
}
MUTES = STARVED
MUTES_BECAUSE = "this finding says what the program waits for, and the GPU is idle during this time"
NAMES_NO_CAUSE = True

_NO_GENERATOR = (
    "If the samples fit in memory, make the data set from arrays, which needs no Python for each "
    "sample: `tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x))` instead of "
    "`from_generator`. Write the changes of a sample with functions of TensorFlow instead of "
    "`tf.numpy_function` or `tf.py_function`, and let several threads compute them ahead: "
    "`.map(f, num_parallel_calls=tf.data.AUTOTUNE).batch(n).prefetch(2)`. Otherwise, let the "
    "generator make whole batches."
)
_IN_GRAPH = Missing(
    Reason.UNRECORDED,
    "Keras fetches its batches inside a graph, so Teho cannot measure the wait for data; "
    "`teho tune` can measure how much time the pipeline costs",
)
_UNSEEN = Missing(Reason.UNRECORDED, "no Python program was observed")


def judge(context: ProgramContext) -> Findings:
    """Find waiting for data that no other rule explains. The first start of workers is not counted.

    This rule also abstains for all rules about the program's time, if a Python program was not
    observed. It also abstains if a program gets its batches where the probe cannot see them.
    """
    if context.summary.program is None and _is_python(context.run.command):
        for node in context.summary.nodes:
            context.figure(node, "time that the program spent on each activity", _UNSEEN)
    for main in context.mains:
        loader, place = main.feed.loader, context.node_of(main)
        settings = loader.settings if loader else {}
        is_pipeline = loader is not None and loader.library == "tf.data"
        if loader and place and is_pipeline and not loader.batches and "looks" not in settings:
            context.figure(place, "waiting for data", _IN_GRAPH)
    waiting = context.waiting()
    if waiting is None or not context.is_loss(_wait_s(waiting), waiting.main):
        return
    if _is_known_overhead(context, waiting):
        return
    pipeline = pipeline_of(waiting)
    generator_percent = (pipeline.generator_percent if pipeline else None) or 0.0
    is_generator = generator_percent >= context.limit("generator_percent")
    yield context.lost_waiting(
        waiting,
        ": a Python generator makes the samples one by one." if is_generator else ".",
        evidence=(
            busiest_stage(pipeline) if pipeline else Evidence("workers", float(waiting.workers)),
            Evidence("cores", float(waiting.cores), "cores"),
        ),
        action=_NO_GENERATOR
        if is_generator
        else (
            f"{'In the slowest lines, do' if waiting.main.feed.lines else 'Do'} less work for "
            "each sample: decode and cut the samples before the job, and store the "
            f"result{context.or_keep_data(waiting.main)}. More cores would also help."
        ),
        regain_percent=(0.0, waiting.share_percent),
    )


def _wait_s(waiting: Waiting) -> float:
    """Return the time of waiting in s without the first start of the workers, a fixed cost."""
    start_s = waiting.loader.first_s / max(1, waiting.loader.epochs) if waiting.workers else 0.0
    return waiting.wait_s - start_s


def _is_known_overhead(context: ProgramContext, waiting: Waiting) -> bool:
    """Return whether the rule known_activity says what the program did while it waited."""
    if waiting.main is not context.mains[0]:
        return False
    return any(
        time.activity.kind is ActivityKind.OVERHEAD
        and not time.activity.may_be_purpose
        and 2 * time.loading_s >= waiting.wait_s
        and context.is_loss(time.wall_s, waiting.main)
        for time in activity_times(waiting.main)
    )


def _is_python(command: Sequence[str]) -> bool:
    """Return whether a command is known to start a Python program."""
    name = command[0].rpartition("/")[2] if command else ""
    launcher = launchers().get(name)
    starts_python = launcher is not None and launcher.own_processes
    return name.startswith("python") or name.endswith(".py") or starts_python
