"""What GPUs drew as a document, and as the lines of LUMI's `gpu-energy`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from teho.devices.drawn import Energy
from teho.model.document import Cell, Column, Document, Fact, Table
from teho.units import J_PER_WH, counted, format_duration
from teho.version import __version__

__all__ = ["energy_document", "energy_lines"]

_COLUMNS = (
    Column(key="gpu", label="GPU"),
    Column(key="energy_j", label="energy", unit="J", shown_in="Wh", decimals=2),
    Column(key="power_w", label="power", unit="W", decimals=2),
    Column(key="elapsed_s", label="time", unit="s"),
)


def energy_document(energy: Energy, notes: Sequence[str] = ()) -> Document:
    """Lay out what was drawn.

    Args:
        energy: of at least one GPU.
        notes: what is lacking, and how exact the figures are.
    """
    rows: tuple[dict[str, Cell], ...] = tuple(
        {
            "gpu": gpu.position,
            "energy_j": gpu.energy_j,
            "power_w": gpu.power_w,
            "elapsed_s": gpu.elapsed_s,
        }
        for gpu in energy.gpus
    )
    used = f"{energy.energy_j / J_PER_WH:.2f} Wh in {format_duration(energy.elapsed_s)}"
    least = "" if energy.is_whole else ", without the GPUs that cannot be read"
    return Document(
        title="teho energy",
        verdict=f"{counted(len(rows), 'GPU')} used {used}{least}.",
        verdict_severity="good" if energy.is_whole else "warning",
        facts=(
            Fact("energy_j", "Energy", energy.energy_j, "J"),
            Fact("power_w", "Mean power", energy.power_w, "W"),
            Fact("elapsed_s", "Time", energy.elapsed_s, "s"),
        ),
        tables=(Table(key="gpus", title="GPUs", columns=_COLUMNS, rows=rows),),
        notes=tuple(notes),
        teho_version=__version__,
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
