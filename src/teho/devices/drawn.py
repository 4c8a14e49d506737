"""What GPUs drew between two readings of their counters, and how exact that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from teho.model.missing import Missing

__all__ = ["Drawn", "Energy", "lacking_words", "tick_error_percent"]

_TICK_S = 0.1
"""NVML's counter advances about every 100 ms."""
_EXACT_S = 10.0
"""From this time on a tick at either end makes less than 2 % of the energy."""


class Drawn(NamedTuple):
    """What one GPU drew."""

    position: int
    """0, 1, 2 … among the job's GPUs of this node."""
    energy_j: float
    elapsed_s: float

    @property
    def power_w(self) -> float:
        """The mean."""
        return self.energy_j / self.elapsed_s if self.elapsed_s > 0 else 0.0


class Energy(NamedTuple):
    """What all GPUs of the job on this node drew."""

    gpus: tuple[Drawn, ...]
    is_whole: bool = True
    """Whether the energy of every GPU is known."""

    @property
    def energy_j(self) -> float:
        """The sum."""
        return sum(gpu.energy_j for gpu in self.gpus)

    @property
    def power_w(self) -> float:
        """The sum of the means."""
        return sum(gpu.power_w for gpu in self.gpus)

    @property
    def elapsed_s(self) -> float:
        """The longest time."""
        return max((gpu.elapsed_s for gpu in self.gpus), default=0.0)


def tick_error_percent(gpus: Sequence[Drawn]) -> float | None:
    """Return by how much the counters' ticks can change the energy; None if it is little."""
    shortest_s = min((gpu.elapsed_s for gpu in gpus), default=_EXACT_S)
    return None if shortest_s >= _EXACT_S else 100 * 2 * _TICK_S / max(shortest_s, 2 * _TICK_S)


def lacking_words(lacking: Mapping[int, Missing]) -> str:
    """Say of which GPUs there is no energy, and why, each reason once."""
    positions: dict[str, list[str]] = {}
    for position, missing in lacking.items():
        positions.setdefault(missing.detail or str(missing), []).append(str(position))
    parts = [
        f"GPU{'' if len(of) == 1 else 's'} {', '.join(of)}: {why}" for why, of in positions.items()
    ]
    return f"no energy from {'; '.join(parts)}"
