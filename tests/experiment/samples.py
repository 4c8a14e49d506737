"""Placements and runs as the tests of `teho compare` need them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from teho.experiment.placement import Placement
from teho.experiment.verdict import Terms
from teho.model.compared import Sample
from teho.model.device import Device
from teho.model.missing import Missing, Reason

NO_ENERGY = Missing(Reason.ABSENT, "no meter")
FREE = Terms({}, {})


def gpus(count: int) -> tuple[Device, ...]:
    return tuple(
        Device(id=f"GPU-{number}", index=number, name="H100", vendor="nvidia")
        for number in range(count)
    )


def place(name: str, cores: int = 8) -> Placement:
    """Return a placement of this name; a GPU comes with this number of cores."""
    kind, _, count = name.partition(":")
    if kind == "gpu":
        return Placement(name, tuple(range(cores)), gpus(int(count)))
    return Placement(name, tuple(range(int(count))))


def whole(elapsed_s: float, **more: Any) -> Sample:
    """Return a run that came to its end."""
    figures = {"energy_j": NO_ENERGY, "gpu_energy_j": NO_ENERGY, **more}
    return Sample(run="r", elapsed_s=elapsed_s, is_whole=True, **figures)


def paced(steps_per_s: float, *, unit: str = "step", fixed_s: float = 1.0, **more: Any) -> Sample:
    """Return a run that was ended when its pace was known."""
    figures = {"energy_j": NO_ENERGY, "gpu_energy_j": NO_ENERGY, **more}
    return Sample(
        run="r", elapsed_s=10.0, unit=unit, steps=100, steps_per_s=steps_per_s, fixed_s=fixed_s,
        start_up_s=fixed_s, **figures,
    )  # fmt: skip


def broken(why: str = "it ended with exit code 3") -> Sample:
    return Sample(run="r", elapsed_s=0.1, why=why, energy_j=NO_ENERGY, gpu_energy_j=NO_ENERGY)


def runs(**of: Sequence[Sample]) -> Mapping[Placement, Sequence[Sample]]:
    """Return runs by placement: `runs(cpu_1=…, gpu_1=…)`."""
    return {place(name.replace("_", ":")): own for name, own in of.items()}


def whole_runs(**speeds: Sequence[float]) -> Mapping[Placement, Sequence[Sample]]:
    """Return runs that came to their ends, by speeds."""
    return runs(**{name: [whole(1 / speed) for speed in own] for name, own in speeds.items()})
