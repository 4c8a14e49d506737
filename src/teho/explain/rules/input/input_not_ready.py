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
    "not_ready_percent": chosen(
        50.0,
        "%",
        "above this limit, most steps wait for a batch. In blind rounds 1 to 8, healthy pipelines "
        "had no batch ready at 0 to 12 % of the steps, and slow ones at 80 to 100 %",
    ),
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
_LEAST_EPOCHS = 2
"""A cache saves work only from the second epoch on."""
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
        checks, empty = loader.settings.get("looks", (0, 0))
        if checks < max(1, context.limit("looks_min")):
            continue
        share = 100 * empty / checks
        if share < context.limit("not_ready_percent"):
            continue
        map_percent = pipeline.map_percent or 0.0
        generator_percent = pipeline.generator_percent or 0.0
        is_generator = generator_percent >= context.limit("map_percent")
        why = ""
        if is_generator:
            why = " A Python generator (`from_generator`) makes the elements, one at a time."
        elif _repeats(context, main, pipeline) and not _is_serial(context, main, pipeline):
            why = " `map` does the same work again in each epoch."
        work = (
            Evidence("share of the pipeline's work that the generator does", generator_percent, "%")
            if is_generator
            else Evidence("share of the pipeline's work that `map` does", map_percent, "%")
        )
        yield context.finding(
            Severity.WARNING,
            f"At {share:.0f} % of the steps, no batch was ready when Keras asked for one.{why}",
            evidence=(
                Evidence("steps that were checked", float(checks)),
                Evidence("steps for which no batch was ready", share, "%"),
                work,
            ),
            action=_action(context, main, pipeline),
        )
        return


def _action(context: ProgramContext, main: MainProcess, pipeline: Pipeline) -> str:
    """Return the change of the slowest part."""
    if (pipeline.generator_percent or 0.0) >= context.limit("map_percent"):
        return (
            "If the data fit into memory, prepare them once with NumPy, on whole arrays, and use "
            "`tf.data.Dataset.from_tensor_slices((x, y)).batch(...)`. Otherwise let the "
            "generator give whole batches: TensorFlow calls Python for each element of the "
            "generator."
        )
    if _is_serial(context, main, pipeline):
        code = ".map(…, num_parallel_calls=tf.data.AUTOTUNE)"
        codes = [with_place(code, call) for call in pipeline.one_by_one("map")]
        return f"Process several elements at the same time: {' and '.join(codes)}."
    if "Interleave" in pipeline.stages:
        code = ".interleave(…, num_parallel_calls=tf.data.AUTOTUNE)"
        codes = [with_place(code, call) for call in pipeline.one_by_one("interleave")]
        return f"Read several files at the same time: {' and '.join(codes)}."
    if _repeats(context, main, pipeline):
        return _cache(context, main, pipeline)
    return "Do less work for each element: prepare the data before the job, and store the result."


def _is_serial(context: ProgramContext, main: MainProcess, pipeline: Pipeline) -> bool:
    """Return whether a `map` that handles one element at a time does most of the work."""
    percent = pipeline.serial_map_percent or 0.0
    return percent >= context.limit("map_percent") and context.cores_of(main) > 1


def _repeats(context: ProgramContext, main: MainProcess, pipeline: Pipeline) -> bool:
    """Return whether `map` does most of the work, again in each epoch, and a cache would fit."""
    size, free = data_bytes(main), context.free_bytes(main)
    is_same = returns_the_same(pipeline) and _epochs(main) >= _LEAST_EPOCHS
    is_most = (pipeline.map_percent or 0.0) >= context.limit("map_percent")
    return is_most and is_same and bool(size and free and size <= free)


def _epochs(main: MainProcess) -> float:
    """Return the number of epochs, from the steps; 0 if it is not known."""
    settings = main.feed.loader.settings if main.feed.loader else {}
    samples, batch = settings.get("samples"), settings.get("batch_size")
    steps = sum(one.steps for one in main.process.progress[-1:])
    return steps * batch / samples if samples and batch else 0.0


def _cache(context: ProgramContext, main: MainProcess, pipeline: Pipeline) -> str:
    add = with_place(".cache()", pipeline.all_of("map")[-1])
    size, free = data_bytes(main) or 0, context.free_bytes(main) or 0.0
    return (
        f"Keep the elements in memory: add {add}, directly after `map` and before `shuffle`, "
        f"`batch` and `prefetch`. The elements need {format_bytes(size)} of memory, and "
        f"{format_bytes(free)} stayed free."
    )
