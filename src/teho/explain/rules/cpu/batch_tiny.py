"""Each step has so few samples that the fixed cost of a step takes most of the time."""

from __future__ import annotations

from teho.explain.program_context import is_on_gpu, median_place
from teho.explain.rule import Evidence, Findings, ProgramContext, chosen
from teho.model.program import Doing

RANK = 263
SEVERITY = "critical, warning"
THRESHOLDS = {
    "samples_max": chosen(
        2.0,
        "samples",
        "if a step has more samples, the calls of the framework take a smaller part of the step",
    ),
    "step_max_s": chosen(
        0.02,
        "s",
        "the calls of the framework take some milliseconds of each step; in a longer step, "
        "computing takes far more time than these calls",
    ),
}


def judge(context: ProgramContext) -> Findings:
    """Find short steps of one or two samples on CPUs that do not wait for data."""
    for main in context.mains:
        loader = context.loader_of(main)
        between = main.process.progress[-1].between if main.process.progress else {}
        if loader is None or is_on_gpu(main) or not between:
            continue
        batch = loader.batch.get("samples") or loader.settings.get("batch_size")
        usual = between.get(median_place(between))
        step_s = usual.total_s / usual.count if usual and usual.count else 0.0
        if not isinstance(batch, int) or not 0 < batch <= context.limit("samples_max"):
            continue
        computing = main.percent(Doing.PYTHON, Doing.NATIVE, Doing.THREADS)
        computing_s = main.seconds(Doing.PYTHON, Doing.NATIVE, Doing.THREADS)
        is_long = not 0 < step_s <= context.limit("step_max_s")
        if is_long or not context.is_loss(computing_s, main):
            continue
        samples = "1 sample" if batch == 1 else f"{batch} samples"
        yield context.lost(
            f"Each step has only {samples} and takes {1000 * step_s:.1f} ms. Most of this time "
            "goes to calls of the framework, not to computing.",
            share_percent=computing,
            evidence=(
                Evidence("batch size", float(batch), "samples"),
                Evidence("usual time of a step", step_s, "s"),
                Evidence("time in Python code and in native code", computing, "%"),
            ),
            action=(
                "Use larger batches, for example `batch_size=32`: `teho tune --allow batch-size` "
                "measures the gain. Larger batches change the training: the learning rate may "
                "have to change too."
            ),
            regain_percent=(0.3 * computing, 0.9 * computing),
            lines=main.lines(Doing.NATIVE, Doing.PYTHON, Doing.THREADS),
        )
        return
