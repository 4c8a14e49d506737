"""Writes recordings as OpenMetrics text, for `promtool tsdb create-blocks-from openmetrics`.

The series have the labels of the node and the GPU. The run and its job are only in the series
`teho_job_info`: a label with an id of each job would make a new series for each job.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from teho.jobs.export.labels import info_labels, labels_of, memory_labels
from teho.jobs.exporters import JOB_INFO, OWN_MEMORY, own_name
from teho.model.metric import METRICS, Metric
from teho.model.run import Node, Run
from teho.store.read import rows_of_node

__all__ = ["FACT_HEADS", "Recorded", "concatenated", "escaped", "head_of", "openmetrics"]

FACT_HEADS = {
    OWN_MEMORY: f"# TYPE {OWN_MEMORY} gauge\n# HELP {OWN_MEMORY} Size of the memory of a GPU.\n",
    JOB_INFO: "# TYPE teho_job info\n# HELP teho_job The run that uses a node and its GPUs.\n",
}
"""Metric that is not sampled -> the lines above its samples."""
_THREADS = 2
"""Arrow needs no lock of the interpreter while it makes lines."""
_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Recorded(NamedTuple):
    """A recording to export."""

    run: Run
    directory: Path
    owner: str


def openmetrics(recordings: Sequence[Recorded], problems: list[str]) -> Iterator[str]:
    """Yield the parts of an OpenMetrics text. Each part has whole lines.

    All samples of a metric follow each other, as the format demands. So each recording is read once
    for each metric, and only one column of one node is in memory at a time.

    Args:
        recordings: to export. Two recordings of one GPU must not overlap in time.
        problems: gets a sentence for each file that cannot be read completely.
    """
    ordered = sorted(recordings, key=lambda recorded: recorded.run.started_at)
    with ThreadPoolExecutor(_THREADS) as pool:
        for metric in METRICS:
            found = _of_metric(metric, ordered, problems)
            yield from _below(head_of(metric), _texts(pool, found))
        for head, found in (
            (OWN_MEMORY, _sizes(ordered, problems)),
            (JOB_INFO, _jobs(ordered, problems)),
        ):
            yield from _below(FACT_HEADS[head], _texts(pool, found))
    yield "# EOF\n"


def head_of(metric: Metric) -> str:
    """Return the lines above the samples of a metric."""
    name = own_name(metric).removesuffix("_total")
    return f"# TYPE {name} {metric.kind}\n# HELP {name} {escaped(metric.meaning)}\n"


def _below(head: str, parts: Iterator[str]) -> Iterator[str]:
    """Yield the lines of a metric below its head; a metric without lines has no head."""
    for part in parts:
        if part:
            yield head + part
            head = ""


class _Series(NamedTuple):
    """Values of one series."""

    name: str
    labels: dict[str, str]
    values: pa.ChunkedArray
    times: pa.ChunkedArray


def _texts(pool: ThreadPoolExecutor, series: Iterator[_Series]) -> Iterator[str]:
    """Yield the lines of each series, in their order. The next series are made meanwhile."""
    waiting: deque[Future[str]] = deque()
    for one in series:
        waiting.append(pool.submit(_lines, one))
        if len(waiting) > _THREADS:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def _of_metric(
    metric: Metric, recordings: Sequence[Recorded], problems: list[str]
) -> Iterator[_Series]:
    name = own_name(metric)
    for place in _places(recordings, metric.scope, [metric.name, "time"], problems):
        values = place.rows[metric.name]
        if not metric.per_core:
            yield _Series(name, place.labels, values, place.rows["time"])
            continue
        lengths = pc.list_value_length(values)
        for number, core in enumerate(place.node.cores):
            # The cores of late tasks are at the end of the lists. Earlier lists are shorter.
            has_core = pc.greater(lengths, number)
            of_core = pc.list_element(values.filter(has_core), number)
            times = place.rows["time"].filter(has_core)
            yield _Series(name, {**place.labels, "core": str(core)}, of_core, times)


def _jobs(recordings: Sequence[Recorded], problems: list[str]) -> Iterator[_Series]:
    """Yield the info of a run at each time at which its node or GPU has a row."""
    for kind in ("node", "gpu"):
        for place in _places(recordings, kind, ["time"], problems):
            about = info_labels(place.recorded.run, place.recorded.owner)
            labels = {**place.labels, **about}
            yield _same(JOB_INFO, labels, 1, place.rows["time"])


def _sizes(recordings: Sequence[Recorded], problems: list[str]) -> Iterator[_Series]:
    """Yield the size of each GPU's memory at each time at which it has a row."""
    for place in _places(recordings, "gpu", ["time"], problems):
        if size := memory_labels(place.node, place.id):
            yield _same(OWN_MEMORY, *size, place.rows["time"])


def _same(name: str, labels: dict[str, str], value: int, times: pa.ChunkedArray) -> _Series:
    """Return a series with the same value at each time."""
    return _Series(name, labels, pa.chunked_array([pa.repeat(value, len(times))]), times)


class _Place(NamedTuple):
    """The rows of one node or GPU."""

    recorded: Recorded
    node: Node
    id: str
    labels: dict[str, str]
    rows: pa.Table


def _places(
    recordings: Sequence[Recorded], kind: str, columns: Sequence[str], problems: list[str]
) -> Iterator[_Place]:
    """Yield every node, or every GPU, that has rows."""
    for recorded in recordings:
        for node in recorded.run.nodes:
            found = rows_of_node(recorded.directory, node.name, kind, columns, problems)
            if found is None:
                continue
            for id_, labels in labels_of(node, kind):
                if id_ in found.places:
                    yield _Place(recorded, node, id_, labels, found.of(id_))


def _lines(series: _Series) -> str:
    """Return one line for each value: the series, the value and the time in s since 1970.

    Arrow makes the lines: a recording of many nodes has some hundred million.
    """
    known = pc.is_valid(series.values)
    values, times = series.values.filter(known), series.times.filter(known)
    if not len(values):
        return ""
    if pa.types.is_float32(values.type):
        values = values.cast(pa.float64())  # all its digits: the store has 64 bits
    milliseconds = times.cast(pa.int64())
    seconds = pc.divide(milliseconds, 1000)
    rest = pc.subtract(milliseconds, pc.multiply(seconds, 1000)).cast(pa.string())
    inner = ",".join(f'{label}="{escaped(text)}"' for label, text in series.labels.items())
    lines = pc.binary_join_element_wise(
        f"{series.name}{{{inner}}} ",
        values.cast(pa.string()),
        " ",
        seconds.cast(pa.string()),
        ".",
        pc.utf8_lpad(rest, 3, "0"),
        "\n",
        "",
    )
    lines = lines.combine_chunks() if isinstance(lines, pa.ChunkedArray) else lines
    return concatenated(lines).decode()


def concatenated(texts: pa.Array) -> bytes:
    """Return all texts of an array without nulls, one after the other."""
    # They follow each other in memory. An offset is the beginning of a text.
    _, offsets, characters = texts.buffers()
    begins = memoryview(offsets).cast("i")
    first, last = begins[texts.offset], begins[texts.offset + len(texts)]
    content: bytes = characters.slice(first, last - first).to_pybytes()
    return content


def escaped(text: str) -> str:
    """Return the text of a label or of a HELP line."""
    return text.translate(_ESCAPES)
