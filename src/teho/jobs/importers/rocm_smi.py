"""`rocm-smi --json` or `rocm-smi --csv` in a loop, with any `--show…` options.

The names of the values are those that `rocm_smi.py` of ROCm prints; they changed with its versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from teho.jobs.cells import Metrics, csv_cells, values_of, whole_of
from teho.jobs.importer import LINES_BEFORE, Importer
from teho.jobs.json_stream import Piece, line_of_piece, pieces_of
from teho.jobs.log import Log, Sample, Source
from teho.jobs.rows import read_rows
from teho.patterns import lazy_pattern

__all__ = ["IMPORTER"]

_TOOL = "rocm-smi"
_METRICS: Metrics = {
    "GPU use (%)": ("gpu_busy_percent", 1.0),
    "GPU Memory Read/Write Activity (%)": ("gpu_memory_busy_percent", 1.0),
    "VRAM Total Used Memory (B)": ("gpu_memory_used_bytes", 1.0),
    "Average Graphics Package Power (W)": ("gpu_power_w", 1.0),
    "Current Socket Graphics Package Power (W)": ("gpu_power_w", 1.0),
    "Temperature (Sensor edge) (C)": ("gpu_temperature_c", 1.0),
    # amdgpu compares the junction with the limit; it replaces the edge.
    "Temperature (Sensor junction) (C)": ("gpu_temperature_c", 1.0),
    "sclk clock speed:": ("gpu_sm_clock_mhz", 1.0),
    "mclk clock speed:": ("gpu_memory_clock_mhz", 1.0),
    "Accumulated Energy (uJ)": ("gpu_energy_j", 1e-6),
}
_NAMES = ("Card series", "Card Series", "Card model", "Card Model")
_TOTAL, _LIMIT = "VRAM Total Memory (B)", "Max Graphics Package Power (W)"
_UUID, _BUS, _CHIP = "Unique ID", "PCI Bus", "GFX Version"
_USED = frozenset({*_METRICS, *_NAMES, _TOTAL, _LIMIT, _UUID, _BUS, _CHIP})
_CARD = lazy_pattern(r"card(\d+)")


class RocmSmi(Importer):
    """The JSON or CSV of `rocm-smi`."""

    title = "rocm-smi"
    written_by = "rocm-smi --showuse --showmeminfo vram --showpower --json"
    place = 40

    def recognises(self, source: Source) -> bool:
        """Return whether the file has values of a card."""
        begin = "\n".join(source.lines(LINES_BEFORE))
        is_csv = any(_head(line) for line in source.lines(LINES_BEFORE))
        return is_csv or ('"card' in begin and any(f'"{name}"' in begin for name in _METRICS))

    def read(self, source: Source) -> Log:
        """Read all answers; a line with a time is the time of the answers below it."""
        log = Log(tool=_TOOL)

        def add(piece: Piece, names: list[str], since: float | None) -> bool:
            if isinstance(piece.value, dict):
                for card, values in piece.value.items():
                    if isinstance(values, dict):
                        _add(card, values, since, log)
                return True
            row = _row(piece.line, names) if names else None
            if row:
                _add(row.pop("device"), row, since, log)
            return row is not None

        read_rows(pieces_of(source.text), log, line_of=line_of_piece, names_of=_head, add=add)
        return log


def _head(line: str) -> list[str]:
    """Return the names of the columns of `--csv`; empty if it is another line."""
    names = csv_cells(line)
    return names if names[:1] == ["device"] and _METRICS.keys() & set(names) else []


def _row(line: str, names: list[str]) -> dict[str, Any] | None:
    cells = csv_cells(line)
    is_row = len(cells) == len(names) and _CARD.fullmatch(cells[0])
    return dict(zip(names, cells, strict=True)) if is_row else None


def _add(card: str, given: Mapping[str, Any], since: float | None, log: Log) -> None:
    """Add the values of one card; the key of the whole system is skipped."""
    match = _CARD.fullmatch(card)
    if match is None:
        return
    text = {name: str(value) for name, value in given.items()}
    values = values_of(text, _METRICS, _TOOL)
    log.keep_unused(text, _USED)
    if not values:
        log.skipped_lines += values is None
        return
    facts = log.gpu("", match[1])
    facts.index, facts.vendor = int(match[1]), "amd"
    names = (text.get(name, "") for name in _NAMES)
    facts.name = facts.name or next((name for name in names if name not in {"", "N/A"}), "")
    facts.uuid = facts.uuid or text.get(_UUID, "")
    facts.pci_bus_id = facts.pci_bus_id or text.get(_BUS, "")
    facts.architecture = facts.architecture or text.get(_CHIP, "")
    facts.memory_bytes = whole_of(text.get(_TOTAL), 1.0, _TOOL) or facts.memory_bytes
    facts.power_limit_w = whole_of(text.get(_LIMIT), 1.0, _TOOL) or facts.power_limit_w
    log.samples.append(Sample.of(since, "", match[1], values))


IMPORTER = RocmSmi
