"""Energy of GPUs between two readings of their counters, and its error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from teho.model.missing import Missing

__all__ = ["Drawn", "Energy", "lacking_words", "tick_error_percent"]

_TICK_S = 0.1
"""NVML's counter advances about every 100 ms."""
_EXACT_S = 10.0
"""From this time on, one tick at each end is less than 2 % of the energy."""


class Drawn(NamedTuple):
    """The energy of one GPU."""

    position: int
    """0, 1, 2 … among the job's GPUs of this node."""
    energy_j: float
    elapsed_s: float

    @property
    def power_w(self) -> float:
        """Mean power."""
        return self.energy_j / self.elapsed_s if self.elapsed_s > 0 else 0.0


class Energy(NamedTuple):
    """The energy of all GPUs of the job on this node."""

    gpus: tuple[Drawn, ...]
    is_whole: bool = True
    """Whether the energy of every GPU is known."""

    @property
    def energy_j(self) -> float:
        """Sum of the energies."""
        return sum(gpu.energy_j for gpu in self.gpus)

    @property
    def power_w(self) -> float:
        """Sum of the mean powers."""
        return sum(gpu.power_w for gpu in self.gpus)

    @property
    def elapsed_s(self) -> float:
        """The longest time."""
        return max((gpu.elapsed_s for gpu in self.gpus), default=0.0)


def tick_error_percent(gpus: Sequence[Drawn]) -> float | None:
    """Return the error of the energy from the counters' ticks; None if it is small."""
    shortest_s = min((gpu.elapsed_s for gpu in gpus), default=_EXACT_S)
    return None if shortest_s >= _EXACT_S else 100 * 2 * _TICK_S / max(shortest_s, 2 * _TICK_S)


def lacking_words(lacking: Mapping[int, Missing]) -> str:
    """Return a sentence that names the GPUs without energy, each reason once."""
    positions: dict[str, list[str]] = {}
    for position, missing in lacking.items():
        positions.setdefault(missing.detail or str(missing), []).append(str(position))
    parts = [
        f"GPU{'' if len(gpus) == 1 else 's'} {', '.join(gpus)}: {why}"
        for why, gpus in positions.items()
    ]
    return f"no energy from {'; '.join(parts)}"
