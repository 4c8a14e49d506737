"""What an importer reads from one file: samples of GPUs and nodes, in Teho's metrics and units."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from sys import intern
from typing import NamedTuple, Union

import msgspec

from teho.jobs.moments import moment_of
from teho.model.missing import Missing

__all__ = ["NODE", "GpuFacts", "Log", "NodeFacts", "Sample", "Source", "Value"]

NODE = "node"
"""Key of a node's own values, in addition to the keys of its GPUs."""

Value = Union[float, int, Missing]
"""One value in the unit of its metric, or why the file has none."""


class Source(NamedTuple):
    """A file to import, and what its user says about it."""

    path: Path
    text: str
    changed_s: float
    """Time of the last change of the file, in s since 1970."""
    columns: tuple[str, ...] = ()
    """Names of the columns, for a file without a line of names."""
    digest: str = ""
    """SHA-256 of the file."""
    gpu_count: int | None = None
    """Number of GPUs whose rows follow each other in turn, for a file that does not name them."""

    def lines(self, most: int | None = None) -> Iterator[str]:
        """Yield the lines of the file without their ends, one at a time: logs can be large.

        Args:
            most: number of lines; None: all.
        """
        begin, count, text = 0, 0, self.text
        while begin < len(text) and count != most:
            end = text.find("\n", begin)
            end = len(text) if end < 0 else end
            yield text[begin:end].rstrip("\r")
            begin, count = end + 1, count + 1


_SHARED: dict[tuple[str, ...], tuple[str, ...]] = {}
_KNOWN: dict[Value, Value] = {}
_MOST_KNOWN = 100_000
"""Equal names and values of all samples are one object: most values are whole percent."""


class Sample(NamedTuple):
    """The values of one GPU or node at one time."""

    at_s: float | None
    """In s since 1970; None: the file does not say. The order of the samples is then their order
    in the file."""
    node: str
    """Host name; empty: the file does not say."""
    device: str
    """Key of a GPU in the file, or `NODE`."""
    metrics: tuple[str, ...]
    cells: tuple[Value, ...]
    """One value for each metric. Tuples, because a log of some days has a million samples."""

    @classmethod
    def of(cls, at_s: float | None, node: str, device: str, values: Mapping[str, Value]) -> Sample:
        """Return a sample with these values by metric."""
        metrics = tuple(values)
        if len(_KNOWN) > _MOST_KNOWN:
            _KNOWN.clear()
        cells = tuple(_KNOWN.setdefault(value, value) for value in values.values())
        return cls(at_s, node, intern(device), _SHARED.setdefault(metrics, metrics), cells)

    @property
    def values(self) -> dict[str, Value]:
        """The values by metric."""
        return dict(zip(self.metrics, self.cells, strict=True))


class GpuFacts(msgspec.Struct, kw_only=True):
    """What a file says about one GPU. None and empty: not said."""

    index: int | None = None
    uuid: str = ""
    name: str = ""
    vendor: str = ""
    """`nvidia` or `amd`."""
    memory_bytes: int | None = None
    power_limit_w: float | None = None
    pci_bus_id: str = ""
    architecture: str = ""


class NodeFacts(msgspec.Struct, kw_only=True):
    """What a file says about the job's part of one node. None and empty: not said."""

    job_id: str = ""
    scheduler: str = ""
    core_count: int | None = None
    gpu_count: int | None = None
    """GPUs that the job was allocated."""
    memory_limit_bytes: int | None = None


class Log(msgspec.Struct, kw_only=True):
    """The content of one file."""

    tool: str
    """Program that wrote the file, as in a sentence: `nvidia-smi dmon`."""
    samples: list[Sample] = []
    gpus: dict[tuple[str, str], GpuFacts] = {}
    """By host name and key of the GPU."""
    nodes: dict[str, NodeFacts] = {}
    """By host name."""
    unused: dict[str, None] = {}
    """Names of columns that Teho has no metric for, in their order."""
    skipped_lines: int = 0
    """Lines that are not from the tool, such as the output of a training."""
    has_local_times: bool = False
    """Whether the times have no time zone."""
    has_dates: bool = True
    """False: the times are in s since midnight."""
    has_times_of_blocks: bool = False
    """Whether times are from lines above the rows, such as the output of `date`."""
    notes: list[str] = []
    """Further sentences for the report."""
    period_s: float | None = None
    """Time between two samples, if the file says so."""
    covers_s: float | None = None
    """Length of the run, if the file has only one sample for the whole run."""
    sampled_every_s: float | None = None
    """Time between the values of which such a sample is the mean."""
    means: tuple[str, ...] = ()
    """Metrics of such a file; their maxima are not known."""
    peaks: dict[tuple[str, str], dict[str, float]] = {}
    """By host name and key of the GPU or `NODE`: the largest value of metrics, if the file has no
    other value of them."""
    is_whole: bool = False
    """Whether the file is about one job, so that a gap in it does not begin another run."""

    def keep_unused(self, names: Iterable[str], used: Container[str]) -> None:
        """Keep the names of the columns that are not used."""
        for name in names:
            if name not in used:
                self.unused.setdefault(name)

    def time_above(self, line: str) -> float | None:
        """Return the time in a line such as the output of `date`; None if it is another line.

        The rows below this line were taken at this time.
        """
        moment = moment_of(line)
        if moment is None or not moment.has_date:
            return None
        self.has_times_of_blocks = True
        self.has_local_times |= not moment.has_zone
        return moment.at_s

    def gpu(self, node: str, key: str) -> GpuFacts:
        """Return the facts of a GPU, to be completed."""
        return self.gpus.setdefault((node, key), GpuFacts())
