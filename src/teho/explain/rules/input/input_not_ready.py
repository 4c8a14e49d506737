"""When Keras asks for a batch, its tf.data pipeline has no batch ready."""

from __future__ import annotations

from teho.explain.kinds import STARVED
from teho.explain.pipeline import Pipeline, pipeline_in, returns_the_same, with_place
from teho.explain.program_context import data_bytes
from teho.explain.rule import Evidence, Findings, ProgramContext, Severity, chosen
from teho.model.program import MainProcess
from teho.units import format_bytes

RANK = 186
SEVERITY = "warning"
THRESHOLDS = {
    "not_ready_percent": chosen(80.0, "%", "above this limit, most steps wait for a batch"),
    "looks_min": chosen(
        20.0,
        "checks",
        "if Teho checked fewer than 20 times whether a batch was ready, there may have been no "
        "batch by chance",
    ),
    "map_percent": chosen(
        50.0,
        "%",
        "above this limit, `map` or a Python generator does most of the pipeline's work",
    ),
}
MUTES = ("serial_program", "cores_unused", *STARVED)
MUTES_BECAUSE = "this finding says what the training waits for: the tf.data pipeline"


def judge(context: ProgramContext) -> Findings:
    """Find a pipeline whose last stage, a prefetch, is mostly empty when Keras needs a batch.

    Keras fetches batches inside a graph, so the time of waiting is not known.
    """
    for main in context.mains:
        loader = main.feed.loader
        pipeline = pipeline_in(loader) if loader else None
        if loader is None or pipeline is None or loader.batches:
            continue
        looks, empty = loader.settings.get("looks", (0, 0))
        if looks < max(1, context.limit("looks_min")):
            continue
        share = 100 * empty / looks
        if share < context.limit("not_ready_percent"):
            continue
        map_percent = pipeline.map_percent or 0.0
        generator_percent = pipeline.generator_percent or 0.0
        is_generator = generator_percent >= context.limit("map_percent")
        why = (
            " A Python generator (`from_generator`) makes the elements, one at a time."
            if is_generator
            else ""
        )
        work = (
            Evidence("share of the pipeline's work that the generator does", generator_percent, "%")
            if is_generator
            else Evidence("share of the pipeline's work that `map` does", map_percent, "%")
        )
        yield context.finding(
            Severity.WARNING,
            f"At {share:.0f} % of the steps, no batch was ready when Keras asked for one.{why}",
            evidence=(
                Evidence("steps that were checked", float(looks)),
                Evidence("steps for which no batch was ready", share, "%"),
                work,
            ),
            action=_action(context, main, pipeline),
        )
        return


def _action(context: ProgramContext, main: MainProcess, pipeline: Pipeline) -> str:
    """Return the change of the slowest part."""
    limit = context.limit("map_percent")
    if (pipeline.generator_percent or 0.0) >= limit:
        return (
            "If the data fit into memory, prepare them once with NumPy, on whole arrays, and use "
            "`tf.data.Dataset.from_tensor_slices((x, y)).batch(...)`. Otherwise let the "
            "generator give whole batches: TensorFlow calls Python for each element of the "
            "generator."
        )
    if (pipeline.serial_map_percent or 0.0) >= limit and context.cores_of(main) > 1:
        code = ".map(…, num_parallel_calls=tf.data.AUTOTUNE)"
        codes = [with_place(code, call) for call in pipeline.one_by_one("map")]
        return f"Process several elements at the same time: {' and '.join(codes)}."
    if "Interleave" in pipeline.stages:
        code = ".interleave(…, num_parallel_calls=tf.data.AUTOTUNE)"
        codes = [with_place(code, call) for call in pipeline.one_by_one("interleave")]
        return f"Read several files at the same time: {' and '.join(codes)}."
    size, free = data_bytes(main), context.free_bytes(main)
    is_same = (pipeline.map_percent or 0.0) >= limit and returns_the_same(pipeline)
    if is_same and size and free and size <= free:
        add = with_place(".cache()", pipeline.all_of("map")[-1])
        return (
            f"Keep the elements in memory: add {add}, after `map`. The elements need "
            f"{format_bytes(size)} of memory, and {format_bytes(free)} stayed free."
        )
    return "Do less work for each element: prepare the data before the job, and store the result."
