"""The one picture of a run that text, HTML, JSON and the live screen render.

Nothing is computed while rendering: every figure that a face shows stands here,
as a number with its unit or as a `Missing` with its reason.
"""

from __future__ import annotations

from typing import Literal, Union

import msgspec

from teho.model.finding import Abstention, Finding
from teho.model.missing import Missing

__all__ = [
    "SCHEMA",
    "Cell",
    "Column",
    "Fact",
    "Plot",
    "PlotSeries",
    "Roof",
    "Roofline",
    "RooflinePoint",
    "Table",
    "View",
]

SCHEMA = "teho.report/1"
"""Name and version of the JSON form; a change that breaks readers raises the number."""

Cell = Union[float, int, str, Missing, None]
"""None: the question does not arise, as the GPU columns of a node without GPUs."""


class Fact(msgspec.Struct, frozen=True):
    """One labelled figure of the head of the report."""

    key: str
    """Stable name, for programs."""
    label: str
    value: Cell
    unit: str = ""
    note: str = ""
    aside: bool = False
    """For programs and `seff` alone; pages that people read leave it out."""


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One column of a table. Numbers are aligned to the right."""

    key: str
    label: str
    band: str = ""
    """Heading that spans this and its neighbours of the same band, such as `GPU load`."""
    unit: str = ""
    """Unit of the numbers in the rows: always a base unit (bytes, J, s, %, W)."""
    shown_in: str = ""
    """Unit that a face writes them in, such as GiB for bytes (`units.convert`); empty: `unit`."""
    decimals: int | None = None
    """Fixed number of decimals, so that a column of figures lines up; None: as the unit reads."""
    aside: bool = False
    """Where there is little room, as on a terminal, this column is left out."""


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """One table; each row is an object from column key to cell."""

    key: str
    """Stable name: `time`, `nodes`, `gpus`, `gpu_activity`, `tasks`, `cpus`, `memory`, `io`,
    `gpu_energy` or `node_energy`."""
    title: str
    columns: tuple[Column, ...]
    rows: tuple[dict[str, Cell], ...]
    """Node by node, in the order of GPUs or ranks."""
    note: str = ""
    outliers: tuple[int, ...] = ()
    """Places in `rows` of those that differ most from the others, most first."""
    shown: tuple[int, ...] = ()
    """Places in `rows` of those that stand for all where there is little room; empty: all do."""
    rest: str = ""
    """What then stands for the others, such as `and 58 nodes alike: GPU busy 91 % to 95 %`."""


class PlotSeries(msgspec.Struct, frozen=True):
    """One line of a plot: finite numbers to five digits, None where nothing was recorded."""

    label: str
    values: list[Union[float, None]]


class Plot(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over time, a line per device."""

    key: str
    """Name of the metric."""
    title: str
    unit: str
    meaning: str
    group: Literal["GPU", "CPU", "Memory", "I/O and network"]
    elapsed_s: list[float]
    """Middle of each time bin (bins,)."""
    series: tuple[PlotSeries, ...]


class Roof(msgspec.Struct, frozen=True, kw_only=True):
    """One rate of arithmetic of a GPU: a horizontal line of its roofline."""

    label: str
    """What calculates at this rate, such as `FP32` or `16-bit tensor`."""
    flop_per_s: float
    """Its peak, by the maker's documents."""
    active: bool
    """Whether the run used it, as far as is known."""


class RooflinePoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where a GPU stands; a span, where the tensor cores' precision makes a difference."""

    label: str
    bytes_per_s: float
    """Traffic of its memory."""
    least_flop_per_s: float
    """Upper bound of its arithmetic, if the tensor cores ran at the lowest of their rates."""
    most_flop_per_s: float
    """The same, if they ran at the highest."""
    least_flop_per_byte: float
    """`least_flop_per_s` for each byte of traffic."""
    most_flop_per_byte: float


class Roofline(msgspec.Struct, frozen=True, kw_only=True):
    """The GPUs of one model against what that model can do at most."""

    model: str
    sentence: str
    """Where the run stands, in one sentence."""
    notes: tuple[str, ...]
    """What to know of the figures, one sentence each."""
    memory_bytes_per_s: float
    """Bandwidth of the memory, by the maker's documents: the slope."""
    roofs: tuple[Roof, ...]
    """From the lowest to the highest."""
    points: tuple[RooflinePoint, ...]
    """One for each GPU."""
    mean: RooflinePoint
    """Of all of them; the only one's, where there is one."""


class View(msgspec.Struct, frozen=True, kw_only=True):
    """A whole report."""

    schema: str = SCHEMA
    run_id: str
    name: str
    command: str
    """As typed, secrets masked, quoted for a shell."""
    state: str
    """`running`, `finished` or `interrupted`."""
    verdict: str
    """The one sentence that matters first."""
    verdict_severity: Literal["critical", "warning", "remark", "good", "unknown"]
    facts: tuple[Fact, ...]
    tables: tuple[Table, ...]
    findings: tuple[Finding, ...]
    abstentions: tuple[Abstention, ...]
    troubles: tuple[str, ...] = ()
    """What went wrong with the recording, one sentence each."""
    notes: tuple[str, ...] = ()
    """What could not be seen here and other remarks on the recording, one sentence each."""
    plots: tuple[Plot, ...] = ()
    heat_map: Plot | None = None
    """How busy each of several GPUs was, in fewer and wider time bins than the plots have."""
    rooflines: tuple[Roofline, ...] = ()
    """One for each model of GPU, where pipes and memory traffic were recorded."""
    teho_version: str = ""
