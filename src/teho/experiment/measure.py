"""How runs are compared: by the time of whole runs, or by the rate of their steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from teho.model.compared import Sample
from teho.units import many

__all__ = ["Measure", "measure_of"]

_LACKING = (
    "the run ended before its step rate was known, so it cannot be compared with runs that were "
    "stopped early: `--full` compares whole runs"
)


class Measure(NamedTuple):
    """The figure by which all runs are compared."""

    by: Literal["time", "pace"]
    unit: str
    """`step`, `batch`, or `sample` if steps have different sizes."""

    def rate(self, sample: Sample) -> float | None:
        """Return the work per second of a run; None if it was not seen."""
        if self.by == "time":
            return 1 / sample.elapsed_s
        each = sample.samples_per_step if self.unit == "sample" else 1.0
        return each and sample.steps_per_s and each * sample.steps_per_s

    def why_not(self, sample: Sample) -> str:
        """Return why a run cannot be compared with the others; empty if it can."""
        if sample.why or self.by == "time":
            return sample.why
        if self.rate(sample) is None:
            return _LACKING
        if self.unit not in {"sample", sample.unit}:
            return (
                f"this run counts {many(sample.unit)}, but the other runs count {many(self.unit)}"
            )
        return ""


def measure_of(runs: Iterable[Sequence[Sample]]) -> Measure:
    """Return how all runs can be compared.

    Args:
        runs: of each variant. A variant with a failed run does not count.
    """
    sound = [own for own in runs if not any(sample.why for sample in own)]
    every = [sample for own in sound for sample in own]
    units = (sample.unit for sample in every if sample.steps_per_s is not None)
    is_whole = all(sample.is_whole for sample in every)
    return Measure("time" if is_whole else "pace", next(units, ""))
