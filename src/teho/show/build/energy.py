"""The energy of GPUs as a document, and as the lines of LUMI's `gpu-energy`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from teho.devices.drawn import Energy
from teho.model.document import Document, Fact
from teho.show.build.layout import column, document, table
from teho.units import J_PER_WH, counted, format_duration

__all__ = ["energy_document", "energy_lines"]


def energy_document(energy: Energy, notes: Sequence[str] = ()) -> Document:
    """Lay out the energy that GPUs used.

    Args:
        energy: of at least one GPU.
        notes: which figures are missing, and how exact the others are.
    """
    gpus = table(
        "gpus",
        "GPUs",
        energy.gpus,
        column("gpu", "GPU", lambda gpu: gpu.position),
        column("energy_j", "energy", lambda gpu: gpu.energy_j,
               unit="J", shown_in="Wh", decimals=2),
        column("power_w", "power", lambda gpu: gpu.power_w, unit="W", decimals=2),
        column("elapsed_s", "time", lambda gpu: gpu.elapsed_s, unit="s"),
    )  # fmt: skip
    used = f"{energy.energy_j / J_PER_WH:.2f} Wh in {format_duration(energy.elapsed_s)}"
    least = "" if energy.is_whole else ", without the GPUs that cannot be read"
    return document(
        title="teho energy",
        verdict=f"{counted(len(energy.gpus), 'GPU')} used {used}{least}.",
        verdict_severity="good" if energy.is_whole else "warning",
        facts=(
            Fact("energy_j", "Energy", energy.energy_j, "J"),
            Fact("power_w", "Mean power", energy.power_w, "W"),
            Fact("elapsed_s", "Time", energy.elapsed_s, "s"),
        ),
        tables=(gpus,),
        notes=tuple(notes),
    )


def energy_lines(energy: Energy) -> Iterable[str]:
    """Yield a line for each GPU, and the total if the energy of every GPU is known."""
    for gpu in energy.gpus:
        yield (
            f"GPU {gpu.position}: {gpu.energy_j / J_PER_WH:.2f} Wh, "
            f"avg power: {gpu.power_w:.2f} W ({gpu.elapsed_s:.2f} s)"
        )
    if energy.is_whole:
        yield f"TOTAL: {energy.energy_j / J_PER_WH:.2f} Wh"
