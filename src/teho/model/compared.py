"""What `teho compare` measured of a program under several allocations, and what it says of them."""

from __future__ import annotations

from typing import Literal, Union

import msgspec

from teho.model.missing import Missing
from teho.model.summary import Figure
from teho.model.tuned import Gain

__all__ = ["SCHEMA", "BreakEven", "Compared", "Contest", "Outcome", "Point", "Sample", "Variant"]

SCHEMA = "teho.compare/1"
"""Name and version of the JSON form; a change that breaks readers raises the number."""

Outcome = Literal["worth_it", "not_worth_it", "no_difference", "not_enough_evidence"]
"""Of the larger allocation against the smaller one."""


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded run of a variant."""

    run: str
    """Its recording; empty if none was made."""
    elapsed_s: float
    is_whole: bool = False
    """Whether it ran to its end, with exit code 0."""
    why: str = ""
    """Why it says nothing about how fast the variant is; empty if it does."""
    unit: str = ""
    """What a step is: `step`, `batch`, or empty if none was seen."""
    steps: int = 0
    """How many were seen."""
    steps_per_s: Union[float, None] = None
    """Once it went steadily; null if that was not seen for long enough."""
    start_up_s: Union[float, None] = None
    """From its beginning to its first step; null if no step was seen."""
    fixed_s: Union[float, None] = None
    """What start-up, compiling and warming up took, beyond what the steps would have taken that
    were done meanwhile; null if its steady pace is not known."""
    import_s: Union[float, None] = None
    """For which its main thread imported,"""
    compile_s: Union[float, None] = None
    """compiled,"""
    copy_s: Union[float, None] = None
    """and copied to the device; null if nobody looked into it."""
    steps_per_epoch: Union[float, None] = None
    samples_per_step: Union[float, None] = None
    """The batch size of all ranks together; null if it is not known."""
    energy_j: Figure
    """Of its node and GPUs, as far as each can be read; the moments before the first reading are
    taken to be like the rest."""
    gpu_energy_j: Figure
    """Of its GPUs alone."""
    idle_gpus: Union[int, None] = None
    """How many of its GPUs were never seen busy; null if it had none, or nobody could look."""

    @property
    def mean_power_w(self) -> Union[float, None]:
        """Of node and GPUs; None if that cannot be read."""
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
    """Why it is out; empty if it was measured."""
    rates: tuple[float, ...] = ()
    """Of each round, how much of the work was done a second: whole runs, or `unit`s."""
    speed: Union[Gain, None] = None
    """Against the first variant."""
    hourly_cost: Union[float, None] = None
    """In the site's unit; null if the site does not say, or no site was named."""

    @property
    def kind(self) -> str:
        """`cpu` or `gpu`."""
        return self.name.partition(":")[0]

    @property
    def words(self) -> str:
        """As in a sentence: `1 GPU`, `2 cores`."""
        count, noun = self.name.partition(":")[2], "GPU" if self.kind == "gpu" else "core"
        return f"{count} {noun}{'s' if count != '1' else ''}"


class Contest(msgspec.Struct, frozen=True, kw_only=True):
    """The larger allocation against the smaller one, by runs that took turns."""

    larger: str
    smaller: str
    speed: Gain
    """How many times as fast the larger one is."""
    price: Union[float, None] = None
    """How many times as dear an hour of it is; null if that is not known."""
    same_cost_cores: Union[int, None] = None
    """How many cores cost as much as the GPUs."""
    same_cost_speed: Union[float, None] = None
    """How many times as fast as that many cores the GPUs are: measured with so many, or at least,
    if the program went ever faster with each core."""
    same_cost_is_measured: bool = False


class BreakEven(msgspec.Struct, frozen=True, kw_only=True):
    """From where on the larger allocation is the faster one."""

    unit: str
    """`step`, `batch`, `sample`, `epoch`, or the name of what was swept."""
    at: float
    low: float
    """The lowest that fits what was measured."""
    high: float
    """And the highest."""


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured with one value of what is swept; there is one point where nothing is."""

    value: Union[float, None] = None
    outcome: Outcome
    verdict: str
    measure: Literal["time", "pace"]
    """Whole runs, or steps a second once it goes steadily."""
    unit: str = ""
    """What a step is: `step`, `batch`, or `sample` where the variants' batches differ in size."""
    variants: tuple[Variant, ...]
    contest: Union[Contest, None] = None
    """Null where there is nothing to hold against each other."""
    break_even: tuple[BreakEven, ...] = ()
    notes: tuple[str, ...] = ()


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the larger allocation is worth it, and what that rests on."""

    schema: str = SCHEMA
    id: str
    """Tag `compare` of all its recordings."""
    command: tuple[str, ...]
    """As typed, secrets masked."""
    outcome: Outcome
    verdict: str
    """The one sentence that matters first."""
    swept: str = ""
    """Name of what was swept; empty: nothing was."""
    points: tuple[Point, ...]
    break_even: Union[BreakEven, None] = None
    """In what was swept."""
    site: str = ""
    """Whose prices these are."""
    cost_unit: str = ""
    notes: tuple[str, ...] = ()
    """What was left out and why, one sentence each."""
    elapsed_s: float = 0.0
