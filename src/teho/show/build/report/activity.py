"""What the GPUs did while they were busy: multiprocessors, pipes and memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from teho.explain.totals import mean_of
from teho.model.document import Cell, Fact, Table
from teho.model.summary import Stat, Summary
from teho.show.build.layout import column
from teho.show.build.report.figures import NodeGpu, figure_of, mean, table_of_gpus
from teho.show.build.report.ranking import Judged

__all__ = ["GPU_ACTIVITY", "activity_facts", "activity_tables"]

GPU_ACTIVITY = ("gpu_activity", "GPU", (Judged("sm_active", "less active", "more active"),))
"""How a table of many rows is sorted: its key, what a row is, and the columns to compare."""

_COLUMNS = {
    "sm_active": ("gpu_sm_active_percent", "SM"),
    "sm_occupancy": ("gpu_sm_occupancy_percent", "Warps"),
    "tensor": ("gpu_tensor_percent", "Tensor"),
    "fp64": ("gpu_fp64_percent", "FP64"),
    "fp32": ("gpu_fp32_percent", "FP32"),
    "fp16": ("gpu_fp16_percent", "FP16"),
    "integer": ("gpu_integer_percent", "Integer"),
    "dram": ("gpu_dram_percent", "Memory"),
}
_MEANINGS = {
    "sm_active": "The column SM shows the share of the multiprocessors (computing units) that "
    "had work.",
    "sm_occupancy": "The column Warps shows the number of warps (groups of threads) on the GPU, "
    "as a share of the largest possible number.",
    "tensor": "A pipe is a part of the GPU for one kind of arithmetic. The columns Tensor, FP64, "
    "FP32, FP16 and Integer show for what share of the time each pipe was active.",
    "dram": "The column Memory shows how fast the GPU read and wrote its memory, as a share of "
    "the highest speed.",
}


def activity_facts(summary: Summary) -> Iterable[Fact]:
    """Yield the mean SM activity, if any GPU reports it."""
    metric, _ = _COLUMNS["sm_active"]
    seen = sum(isinstance(gpu.stats.get(metric), Stat) for gpu in summary.gpus)
    if seen:
        note = f"{seen} of {len(summary.gpus)} GPUs" if seen < len(summary.gpus) else ""
        yield Fact(metric, "SM activity", mean_of(summary.gpus, metric), "%", note)


def activity_tables(summary: Summary) -> Iterable[Table]:
    """Yield a table of the GPUs with a column for each metric that any GPU reports."""
    reported = {
        key: pair
        for key, pair in _COLUMNS.items()
        if any(isinstance(gpu.stats.get(pair[0]), Stat) for gpu in summary.gpus)
    }
    if reported:
        yield table_of_gpus(
            GPU_ACTIVITY[0],
            "What the GPUs did",
            summary,
            *(
                column(key, label, _mean_of(metric), band="Activity", unit="%", decimals=1)
                for key, (metric, label) in reported.items()
            ),
            note=" ".join(words for key, words in _MEANINGS.items() if key in reported),
        )


def _mean_of(metric: str) -> Callable[[NodeGpu], Cell]:
    return lambda pair: mean(figure_of(pair[1].stats, metric))
