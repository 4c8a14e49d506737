"""`amd-smi metric --json` or `--csv`, in a loop or with `--watch`.

With `--watch`, each answer has its time. The names are from `amdsmi_commands.py` of ROCm.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from teho.jobs.cells import Metrics, csv_cells, values_of, whole_of
from teho.jobs.importer import LINES_BEFORE, Importer
from teho.jobs.json_stream import Piece, line_of_piece, pieces_of
from teho.jobs.log import Log, Sample, Source
from teho.jobs.moments import moment_of
from teho.jobs.rows import read_rows

__all__ = ["IMPORTER"]

_TOOL = "amd-smi"
_MIB = 2.0**20
_METRICS: Metrics = {
    "gfx_activity": ("gpu_busy_percent", 1.0),
    "umc_activity": ("gpu_memory_busy_percent", 1.0),
    "socket_power": ("gpu_power_w", 1.0),
    "edge": ("gpu_temperature_c", 1.0),
    "hotspot": ("gpu_temperature_c", 1.0),
    "gfx_0_clk": ("gpu_sm_clock_mhz", 1.0),
    "mem_0_clk": ("gpu_memory_clock_mhz", 1.0),
    "used_vram": ("gpu_memory_used_bytes", _MIB),
    "total_energy_consumption": ("gpu_energy_j", 1.0),
    "total_correctable_count": ("gpu_ecc_corrected", 1.0),
    "total_uncorrectable_count": ("gpu_ecc_uncorrected", 1.0),
}
"""By column of the CSV. Its `MB` are MiB."""
_PATHS = {
    "gfx_activity": ("usage", "gfx_activity"),
    "umc_activity": ("usage", "umc_activity"),
    "socket_power": ("power", "socket_power"),
    "edge": ("temperature", "edge"),
    "hotspot": ("temperature", "hotspot"),
    "gfx_0_clk": ("clock", "gfx_0", "clk"),
    "mem_0_clk": ("clock", "mem_0", "clk"),
    "used_vram": ("mem_usage", "used_vram"),
    "total_vram": ("mem_usage", "total_vram"),
    "total_energy_consumption": ("energy", "total_energy_consumption"),
    "total_correctable_count": ("ecc", "total_correctable_count"),
    "total_uncorrectable_count": ("ecc", "total_uncorrectable_count"),
}
"""Column of the CSV -> the place of the same value in the JSON."""
_GPU, _TIME, _TOTAL = "gpu", "timestamp", "total_vram"


class AmdSmi(Importer):
    """The JSON or CSV of `amd-smi metric`."""

    title = "amd-smi"
    written_by = "amd-smi metric --watch 5 --csv"
    place = 50

    def recognises(self, source: Source) -> bool:
        """Return whether the file has the values of a GPU."""
        begin = "\n".join(source.lines(LINES_BEFORE))
        is_csv = any(_head(line) for line in source.lines(LINES_BEFORE))
        return is_csv or ('"gpu"' in begin and any(f'"{name}"' in begin for name in _METRICS))

    def read(self, source: Source) -> Log:
        """Read all answers; a line with a time is the time of the answers below it."""
        log = Log(tool=_TOOL)

        def add(piece: Piece, names: list[str], since: float | None) -> bool:
            if piece.value is not None:
                for entry in _entries(piece.value):
                    _add(_flat(entry), since, log)
                return True
            row = _row(piece.line, names) if names else None
            if row:
                _add(row, since, log)
            return bool(row)

        names = read_rows(
            pieces_of(source.text), log, line_of=line_of_piece, names_of=_head, add=add
        )
        log.keep_unused(names, {*_METRICS, _GPU, _TIME, _TOTAL})
        return log


def _head(line: str) -> list[str]:
    """Return the names of the columns of `--csv`; empty if it is another line."""
    names = csv_cells(line)
    return names if _GPU in names and _METRICS.keys() & set(names) else []


def _row(line: str, names: list[str]) -> dict[str, str] | None:
    cells = csv_cells(line)
    return dict(zip(names, cells, strict=True)) if len(cells) == len(names) else None


def _entries(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the entries of all GPUs in an answer: older versions print a list of them."""
    if isinstance(value, list):
        for one in value:
            yield from _entries(one)
    elif isinstance(value, dict):
        inner = value.get("gpu_data")
        if isinstance(inner, list):
            for one in inner:
                if isinstance(one, dict):
                    yield {_TIME: value.get(_TIME, ""), **one}
        else:
            yield value


def _flat(entry: Mapping[str, Any]) -> dict[str, str]:
    """Return the values that Teho uses, by their names in the CSV."""
    row = {name: str(entry[name]) for name in (_GPU, _TIME) if name in entry}
    for name, path in _PATHS.items():
        value: Any = entry
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, dict):
            value = value.get("value")
        if value is not None:
            row[name] = str(value)
    return row


def _add(row: Mapping[str, str], since: float | None, log: Log) -> None:
    """Add the values of one GPU."""
    key = row.get(_GPU, "").strip()
    values = values_of(row, _METRICS, _TOOL)
    if not key.isdecimal() or not values:
        log.skipped_lines += 1
        return
    at_s = since
    if moment := moment_of(row.get(_TIME, "")):
        at_s = moment.at_s
        log.has_local_times |= not moment.has_zone
    facts = log.gpu("", key)
    facts.index, facts.vendor = int(key), "amd"
    facts.memory_bytes = whole_of(row.get(_TOTAL), _MIB, _TOOL) or facts.memory_bytes
    log.samples.append(Sample.of(at_s, "", key, values))


IMPORTER = AmdSmi
