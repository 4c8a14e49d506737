"""Writes recordings as OpenMetrics text, for `promtool tsdb create-blocks-from openmetrics`.

The series have the labels of the node and the GPU. The run and its job are only in the series
`teho_job_info`: a label with an id of each job would make a new series for each job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from teho.jobs.export.labels import all_labels, run_labels
from teho.model.metric import METRICS, Metric
from teho.model.run import Run
from teho.store.read import rows_of_node

__all__ = ["Recorded", "metric_name", "openmetrics"]

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Recorded(NamedTuple):
    """A recording to export."""

    run: Run
    directory: Path
    owner: str


def metric_name(metric: Metric) -> str:
    """Return the name of a metric in the store, such as `teho_gpu_power_w`."""
    return f"teho_{metric.name}"


def openmetrics(recordings: Sequence[Recorded], problems: list[str]) -> Iterator[str]:
    """Yield the lines of an OpenMetrics text, each with its line break.

    All samples of a metric follow each other, as the format demands. So each recording is read once
    for each metric, and only one column of one node is in memory at a time.

    Args:
        recordings: to export. Two recordings of one GPU must not overlap in time.
        problems: gets a sentence for each file that cannot be read completely.
    """
    for metric in METRICS:
        lines = _of_metric(metric, recordings, problems)
        first = next(lines, None)
        if first is not None:
            name = metric_name(metric)
            yield f"# TYPE {name} {metric.kind}\n"
            yield f"# HELP {name} {metric.meaning.translate(_ESCAPES)}\n"
            yield first
            yield from lines
    lines = _jobs(recordings, problems)
    first = next(lines, None)
    if first is not None:
        yield "# TYPE teho_job info\n"
        yield "# HELP teho_job The run and the job that used a node and its GPUs.\n"
        yield first
        yield from lines
    yield "# EOF\n"


def _of_metric(
    metric: Metric, recordings: Sequence[Recorded], problems: list[str]
) -> Iterator[str]:
    suffix = "_total" if metric.kind == "counter" else ""
    columns = [metric.name, "time"]
    for recorded in _in_order(recordings):
        for node, device, labels in all_labels(recorded.run):
            if (device is None) != (metric.scope == "node"):
                continue
            found = rows_of_node(recorded.directory, node.name, metric.scope, columns, problems)
            id_ = device.id if device else "node"
            if found is None or id_ not in found.places:
                continue
            own = found.of(id_)
            times = _times(own)
            if metric.per_core:
                yield from _of_cores(metric, labels, node.cores, own[metric.name], times)
                continue
            series = f"{metric_name(metric)}{suffix}{_text(labels)}"
            for value, time in zip(own[metric.name].to_pylist(), times, strict=True):
                if value is not None:
                    yield f"{series} {value!r} {time}\n"


def _of_cores(
    metric: Metric,
    labels: dict[str, str],
    cores: Sequence[int],
    values: pa.ChunkedArray,
    times: Sequence[str],
) -> Iterator[str]:
    rows = values.to_pylist()
    for place, core in enumerate(cores):
        series = f"{metric_name(metric)}{_text({**labels, 'core': str(core)})}"
        for row, time in zip(rows, times, strict=True):
            if row is not None and place < len(row):
                yield f"{series} {row[place]} {time}\n"


def _jobs(recordings: Sequence[Recorded], problems: list[str]) -> Iterator[str]:
    """Yield the info of a run at each time at which its node or GPU has a row."""
    for recorded in _in_order(recordings):
        about = run_labels(recorded.run, recorded.owner)
        for node, device, labels in all_labels(recorded.run):
            kind = "gpu" if device else "node"
            found = rows_of_node(recorded.directory, node.name, kind, ["time"], problems)
            id_ = device.id if device else "node"
            if found is None or id_ not in found.places:
                continue
            known = {name: value for name, value in about.items() if value}
            series = f"teho_job_info{_text({**labels, **known})}"
            for time in _times(found.of(id_)):
                yield f"{series} 1 {time}\n"


def _in_order(recordings: Iterable[Recorded]) -> list[Recorded]:
    """Return the recordings by their start: the samples of a series must be in order."""
    return sorted(recordings, key=lambda recorded: recorded.run.started_at)


def _times(table: pa.Table) -> list[str]:
    """Return the times of rows in s since 1970, with ms."""
    milliseconds = table["time"].cast(pa.int64()).to_pylist()
    return [f"{time // 1000}.{time % 1000:03d}" for time in milliseconds]


def _text(labels: dict[str, str]) -> str:
    inner = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items())
    return "{" + inner + "}"
