"""The `Document` that every command makes of its results, and that text, HTML and JSON render.

Renderers compute no figures: the document has every shown figure, as a number with its unit or
as a `Missing` with its reason.
"""

from __future__ import annotations

from typing import Literal, Union

import msgspec

from teho.model.finding import Abstention, Finding
from teho.model.missing import Missing
from teho.model.trace import StepPicture

__all__ = [
    "DOCUMENT_SCHEMA",
    "SCHEMA",
    "Cell",
    "Column",
    "Document",
    "Fact",
    "Item",
    "Level",
    "Listing",
    "Plot",
    "PlotSeries",
    "Report",
    "Roof",
    "RooflinePlot",
    "RooflinePoint",
    "Table",
    "VerdictSeverity",
]

SCHEMA = "teho.report/1"
"""Name and version of the JSON form of a `Report`; an incompatible change raises the number."""
DOCUMENT_SCHEMA = "teho.document/1"
"""The same for any other document."""

Level = Literal["first", "default", "why"]
"""`first`: above all tables. `why`: only with `--why`; HTML folds it."""

VerdictSeverity = Literal["critical", "warning", "remark", "good", "unknown"]

Cell = Union[float, int, str, Missing, None]
"""None: not applicable, such as the GPU columns of a node without GPUs."""


class Fact(msgspec.Struct, frozen=True):
    """One figure from the lines below the verdict, with its label, such as the run time."""

    key: str
    """Fixed name, for programs."""
    label: str
    value: Cell
    unit: str = ""
    note: str = ""
    aside: bool = False
    """Whether only the formats JSON and `seff` show this fact."""


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One column of a table. Numbers are aligned to the right."""

    key: str
    label: str
    band: str = ""
    """Heading above all neighbouring columns with the same band, such as `GPU load`."""
    unit: str = ""
    """Unit of the numbers in the rows: always a base unit (bytes, J, s, %, W)."""
    shown_in: str = ""
    """Unit of the numbers in text and HTML, such as GiB for bytes; empty: the same as `unit`."""
    decimals: int | None = None
    """Number of decimals of all numbers in the column; null: the usual number of decimals for the
    unit."""
    aside: bool = False
    """Whether this column is left out if there is little room, as on a terminal."""
    spare: bool = False
    """Whether this column is left out first if a table is too wide for a short text report."""


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """One table. Each row is an object with one cell for each column, under the column's `key`."""

    key: str
    """Fixed name; in a report: `time`, `nodes`, `gpus`, `gpu_activity`, `tasks`, `cpus`, `memory`,
    `io`, `gpu_energy`, `node_energy` or `gpu_drivers`."""
    title: str
    columns: tuple[Column, ...]
    rows: tuple[dict[str, Cell], ...]
    """Sorted by node, then by GPU or rank."""
    note: str = ""
    outliers: tuple[int, ...] = ()
    """Indices in `rows` of the rows that differ most from all other rows. The most different row
    is first."""
    shown: tuple[int, ...] = ()
    """Indices in `rows` of the rows to show if there is little room; empty: all rows are shown."""
    few: tuple[int, ...] = ()
    """Indices in `rows` of the most important rows, most important first, for a screen on which the
    table does not fit; empty: such a table is left out."""
    rest: str = ""
    """A line about the other rows, such as `and 58 more similar nodes: GPU busy 91 % to 95 %`."""
    level: Level = "default"


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of a `Listing`."""

    text: str
    lead: str = ""
    """Name that is printed in front of the text."""
    severity: Literal["", "critical", "warning", "remark", "hint", "good", "unknown"] = ""
    """Severity, printed as a mark in front of the entry; empty: no mark."""
    details: tuple[str, ...] = ()
    """Remarks and sources, one sentence each."""
    code: tuple[str, ...] = ()
    """Lines of a script, to be copied as they are."""


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """A list of sentences, with a title."""

    key: str
    """Fixed name, for programs."""
    title: str
    items: tuple[Item, ...]
    level: Level = "default"


class PlotSeries(msgspec.Struct, frozen=True):
    """One line of a plot: numbers with five significant digits, or null if a value is missing."""

    label: str
    values: list[Union[float, None]]
    mean: Union[float, None] = None
    """Mean over the recorded time, from all samples; null if only the points are known."""
    least: Union[float, None] = None
    """Smallest recorded value; null for the rate of a counter, or for the mean of several GPUs."""
    most: Union[float, None] = None
    """Largest recorded value; null for the rate of a counter, or for the mean of several GPUs."""


class Plot(msgspec.Struct, frozen=True, kw_only=True):
    """One metric over time, with one line per device."""

    key: str
    """Name of the metric."""
    title: str
    unit: str
    meaning: str
    group: Literal["GPU", "CPU", "Memory", "I/O and network"]
    elapsed_s: list[float]
    """Middle of each time bin, in seconds after the start of the program."""
    series: tuple[PlotSeries, ...]


class Roof(msgspec.Struct, frozen=True, kw_only=True):
    """One peak speed of a GPU's arithmetic: a horizontal line of the roofline."""

    label: str
    """What computes at this speed, such as `FP32` or `16-bit tensor`."""
    flop_per_s: float
    """Peak speed in FLOP/s, from the maker's documents."""
    active: bool
    """Whether the run used this kind of arithmetic, as far as Teho knows."""


class RooflinePoint(msgspec.Struct, frozen=True, kw_only=True):
    """The point of one GPU in the roofline plot: a range, if the tensor precision is unknown."""

    label: str
    bytes_per_s: float
    """Traffic of the GPU's memory."""
    least_flop_per_s: float
    """Upper bound of the GPU's operations per second, if its tensor cores ran at their lowest
    rate."""
    most_flop_per_s: float
    """Upper bound of the GPU's operations per second, if its tensor cores ran at their highest
    rate."""
    least_flop_per_byte: float
    """`least_flop_per_s` divided by `bytes_per_s`."""
    most_flop_per_byte: float


class RooflinePlot(msgspec.Struct, frozen=True, kw_only=True):
    """The GPUs of one model, compared with the peaks of this model."""

    model: str
    sentence: str
    """What limits the run, in one sentence."""
    notes: tuple[str, ...]
    """Remarks on the figures, one sentence each."""
    memory_bytes_per_s: float
    """Bandwidth of the memory, from the maker's documents: the sloping line of the plot."""
    roofs: tuple[Roof, ...]
    """Peak speeds of the arithmetic, from the lowest to the highest."""
    points: tuple[RooflinePoint, ...]
    """One for each GPU."""
    mean: RooflinePoint
    """Mean of all GPUs; if there is only one GPU, the point of this GPU."""


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """What a command found."""

    schema: str = DOCUMENT_SCHEMA
    title: str = ""
    """Name of what the document describes, such as a run or a cluster."""
    verdict: str
    """The most important result, in one sentence."""
    verdict_severity: VerdictSeverity
    facts: tuple[Fact, ...] = ()
    tables: tuple[Table, ...] = ()
    findings: tuple[Finding, ...] = ()
    lists: tuple[Listing, ...] = ()
    """All lists of sentences, the most important list first."""
    abstentions: tuple[Abstention, ...] = ()
    troubles: tuple[str, ...] = ()
    """Problems of the recording, one sentence each."""
    notes: tuple[str, ...] = ()
    """Missing information and other remarks, one sentence each."""
    plots: tuple[Plot, ...] = ()
    heat_map: Plot | None = None
    """How busy each GPU was, if there are several GPUs. The time bins of the heat map can be wider
    than the time bins of `plots`."""
    rooflines: tuple[RooflinePlot, ...] = ()
    """One for each GPU model, if the activity of pipes and memory was recorded."""
    step: StepPicture | None = None
    """A picture of one step, only in the output of `teho profile`."""
    commands: tuple[str, ...] = ()
    """What can be done next, one sentence each; commands are in backquotes and can be copied."""
    teho_version: str = ""


class Report(Document, frozen=True, kw_only=True):
    """The whole report about one run."""

    schema: str = SCHEMA
    run_id: str
    name: str
    command: str
    """The command as the user typed it, with secrets masked, and quoted for a shell."""
    state: str
    """`running`, `finished` or `interrupted`."""
    facts: tuple[Fact, ...]
    tables: tuple[Table, ...]
    findings: tuple[Finding, ...]
    abstentions: tuple[Abstention, ...]
