"""The lines of `teho energy`, which are those of the `gpu-energy` that LUMI's users know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from teho.model.missing import Missing
from teho.units import J_PER_WH

__all__ = ["Drawn", "energy_lines", "lacking_words"]


class Drawn(NamedTuple):
    """What one GPU drew."""

    position: int
    """0, 1, 2 … among the job's GPUs of this node."""
    energy_j: float
    elapsed_s: float


def energy_lines(gpus: Sequence[Drawn], *, is_whole: bool = True) -> Iterable[str]:
    """Yield a line for each GPU, and the total where none of them is lacking."""
    for gpu in gpus:
        power_w = gpu.energy_j / gpu.elapsed_s if gpu.elapsed_s > 0 else 0.0
        yield (
            f"GPU {gpu.position}: {gpu.energy_j / J_PER_WH:.2f} Wh, "
            f"avg power: {power_w:.2f} W ({gpu.elapsed_s:.2f} s)"
        )
    if is_whole:
        yield f"TOTAL: {sum(gpu.energy_j for gpu in gpus) / J_PER_WH:.2f} Wh"


def lacking_words(lacking: Mapping[int, Missing]) -> str:
    """Say of which GPUs there is no energy, and why, each reason once."""
    positions: dict[str, list[str]] = {}
    for position, missing in lacking.items():
        positions.setdefault(missing.detail or str(missing), []).append(str(position))
    parts = [
        f"GPU{'' if len(of) == 1 else 's'} {', '.join(of)}: {why}" for why, of in positions.items()
    ]
    return f"no energy from {'; '.join(parts)}"
