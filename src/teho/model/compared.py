"""Measurements and verdict of `teho compare`: one program under several allocations."""

from __future__ import annotations

from typing import Literal, Union

import msgspec

from teho.model.missing import Missing
from teho.model.plan import PastWait
from teho.model.summary import Figure
from teho.model.tuned import Gain

__all__ = [
    "SCHEMA",
    "BreakEven",
    "Compared",
    "FromSubmission",
    "Outcome",
    "PairComparison",
    "Point",
    "Sample",
    "Variant",
]

SCHEMA = "teho.compare/1"
"""Name and version of the JSON form; an incompatible change raises the number."""

Outcome = Literal["worth_it", "not_worth_it", "no_difference", "not_enough_evidence"]
"""Result of the larger allocation compared with the smaller one."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded run of a variant."""

    run: str
    """Id of its recording; empty: no recording."""
    elapsed_s: float
    is_whole: bool = False
    """Whether it ran to its end, with exit code 0."""
    why: str = ""
    """Why its speed cannot be used; empty if it can."""
    unit: str = ""
    """Kind of step: `step`, `batch`; empty if no step was seen."""
    steps: int = 0
    """Number of steps seen."""
    steps_per_s: Union[float, None] = None
    """Steady step rate; null if it was not steady for long enough."""
    start_up_s: Union[float, None] = None
    """Time from its start to its first step; null if no step was seen."""
    fixed_s: Union[float, None] = None
    """Time of start-up, compilation and warm-up, without the steady time of the steps in it; null
    if the steady step rate is unknown."""
    import_s: Union[float, None] = None
    """Time in which its main thread imported modules; null if unknown."""
    compile_s: Union[float, None] = None
    """Time in which its main thread compiled; null if unknown."""
    copy_s: Union[float, None] = None
    """Time in which its main thread copied to the device; null if unknown."""
    steps_per_epoch: Union[float, None] = None
    samples_per_step: Union[float, None] = None
    """Batch size of all ranks together; null if unknown."""
    energy_j: Figure
    """Energy of its node and GPUs, as far as they can be read. The time before the first reading
    is assumed to be like the rest."""
    gpu_energy_j: Figure
    """Energy of only its GPUs."""
    idle_gpus: Union[int, None] = None
    """Number of its GPUs that were never busy; null if it had no GPU, or if this is unknown."""

    @property
    def mean_power_w(self) -> Union[float, None]:
        """Mean power of node and GPUs. None: it cannot be read."""
        return None if isinstance(self.energy_j, Missing) else self.energy_j / self.elapsed_s


class Variant(msgspec.Struct, frozen=True, kw_only=True):
    """The program under one allocation."""

    name: str
    """`cpu:2`, `gpu:1`."""
    cores: int
    gpus: int
    gpu_name: str = ""
    samples: tuple[Sample, ...] = ()
    why: str = ""
    """Why it was not measured; empty if it was."""
    rates: tuple[float, ...] = ()
    """Work per s in each round: whole runs, or `unit`s."""
    speed: Union[Gain, None] = None
    """Speed-up against the first variant."""
    hourly_cost: Union[float, None] = None
    """Cost in the site's unit; null if the site does not document it, or no site was given."""

    @property
    def kind(self) -> str:
        """`cpu` or `gpu`."""
        return self.name.partition(":")[0]

    @property
    def words(self) -> str:
        """Words for a sentence: `1 GPU`, `2 cores`."""
        count, noun = self.name.partition(":")[2], "GPU" if self.kind == "gpu" else "core"
        return f"{count} {noun}{'s' if count != '1' else ''}"


class PairComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The larger allocation compared with the smaller one, by alternating runs."""

    larger: str
    smaller: str
    speed: Gain
    """Speed-up of the larger allocation."""
    price: Union[float, None] = None
    """Ratio of the costs of an hour; null if unknown."""
    same_cost_cores: Union[int, None] = None
    """Number of cores with the same cost as the GPUs."""
    same_cost_speed: Union[float, None] = None
    """Speed-up of the GPUs against this number of cores: measured, or else a lower bound for a
    program that scales perfectly with the cores."""
    same_cost_is_measured: bool = False


class FromSubmission(msgspec.Struct, frozen=True, kw_only=True):
    """Time from submission to result: the median wait of the user's jobs, and the measured time."""

    cluster: str
    """Cluster of these jobs."""
    larger_wait: PastWait
    """Of past jobs with the GPUs of the larger allocation, or with its cores if it has no GPU."""
    smaller_wait: PastWait
    larger_s: float
    """Median wait and measured time of the larger allocation together."""
    smaller_s: float


class BreakEven(msgspec.Struct, frozen=True, kw_only=True):
    """The break-even size: from here on, the larger allocation is faster."""

    unit: str
    """`step`, `batch`, `sample`, `epoch`, or the name of the swept value."""
    at: float
    low: float
    """Lower end of the values that fit the measurements."""
    high: float
    """Upper end of these values."""


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """Measurements with one swept value. Without a sweep, the result has one point."""

    value: Union[float, None] = None
    outcome: Outcome
    verdict: str
    measure: Literal["time", "pace"]
    """Whole runs, or the steady step rate."""
    unit: str = ""
    """Kind of step: `step`, `batch`, or `sample` if the variants' batches differ in size."""
    variants: tuple[Variant, ...]
    # `contest` is the key in JSON.
    comparison: Union[PairComparison, None] = msgspec.field(default=None, name="contest")
    """Null if two allocations cannot be compared."""
    from_submission: Union[FromSubmission, None] = None
    """Null if whole runs were not measured, or if fewer than five past jobs of either size are
    known."""
    break_even: tuple[BreakEven, ...] = ()
    notes: tuple[str, ...] = ()


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict about the larger allocation, and the measurements behind it."""

    schema: str = SCHEMA
    id: str
    """Tag `compare` of all its recordings."""
    command: tuple[str, ...]
    """As typed, secrets masked."""
    outcome: Outcome
    verdict: str
    """The most important sentence."""
    swept: str = ""
    """Name of the swept value; empty: no sweep."""
    points: tuple[Point, ...]
    break_even: Union[BreakEven, None] = None
    """Break-even value of the sweep."""
    site: str = ""
    """Site with these prices."""
    cost_unit: str = ""
    notes: tuple[str, ...] = ()
    """Skipped parts with reasons, one sentence each."""
    elapsed_s: float = 0.0
