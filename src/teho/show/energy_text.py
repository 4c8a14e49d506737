"""The lines of `teho energy`, which are those of the `gpu-energy` that LUMI's users know."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from teho.units import J_PER_WH

__all__ = ["Drawn", "energy_lines"]


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
