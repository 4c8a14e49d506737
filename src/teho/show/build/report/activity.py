"""What the GPUs did while they were busy, where they tell: multiprocessors, pipes, memory."""

from __future__ import annotations

from collections.abc import Iterable

from teho.explain.totals import mean_of
from teho.model.document import Cell, Column, Fact, Table
from teho.model.missing import Missing, Reason
from teho.model.summary import Stat, Summary
from teho.show.build.report.ranking import Judged

__all__ = ["GPU_ACTIVITY", "activity_facts", "activity_tables"]

GPU_ACTIVITY = ("gpu_activity", "GPU", (Judged("sm_active", "less active", "more active"),))
"""How the table of many rows is sorted: key, what a row is, columns that are compared."""

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
    "sm_active": "SM is the share of the multiprocessors that had work: how much of the GPU was "
    "in use.",
    "sm_occupancy": "Warps are those that were resident, of those that fit.",
    "tensor": "Tensor, FP64 to FP16 and Integer are the share of time in which these pipes were "
    "active.",
    "dram": "Memory is its traffic, of its bandwidth.",
}


def activity_facts(summary: Summary) -> Iterable[Fact]:
    """Yield how much of the GPUs was in use, where any of them tells."""
    metric, _ = _COLUMNS["sm_active"]
    seen = sum(isinstance(gpu.stats.get(metric), Stat) for gpu in summary.gpus)
    if seen:
        note = f"{seen} of {len(summary.gpus)} GPUs" if seen < len(summary.gpus) else ""
        yield Fact(metric, "SM activity", mean_of(summary.gpus, metric), "%", note)


def activity_tables(summary: Summary) -> Iterable[Table]:
    """Yield a table of the GPUs with a column for everything that any of them tells."""
    told = {
        key: pair
        for key, pair in _COLUMNS.items()
        if any(isinstance(gpu.stats.get(pair[0]), Stat) for gpu in summary.gpus)
    }
    if told:
        yield Table(
            key=GPU_ACTIVITY[0],
            title="What the GPUs did",
            columns=(
                Column(key="node", label="Node"),
                Column(key="gpu", label="GPU"),
                *(
                    Column(key=key, label=label, band="Activity", unit="%", decimals=1)
                    for key, (_, label) in told.items()
                ),
            ),
            rows=tuple(
                {
                    "node": node.name,
                    "gpu": gpu.position,
                    **{key: _mean(gpu.stats.get(metric)) for key, (metric, _) in told.items()},
                }
                for node in summary.nodes
                for gpu in node.gpus
            ),
            note=" ".join(words for key, words in _MEANINGS.items() if key in told),
        )


def _mean(stat: Stat | Missing | None) -> Cell:
    if isinstance(stat, Stat):
        return stat.mean
    return stat or Missing(Reason.UNRECORDED, "not among the metrics looked at")
