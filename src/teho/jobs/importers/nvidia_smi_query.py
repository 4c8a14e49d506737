"""`nvidia-smi --query-gpu=… --format=csv -l N`, with any columns.

`nvidia-smi --help-query-gpu` lists the names of the columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from typing import NamedTuple

from teho.errors import InputError
from teho.jobs.cells import UNITS, Metrics, csv_cells, missing_of, number_of, whole_of
from teho.jobs.importer import LINES_BEFORE, Importer
from teho.jobs.log import GpuFacts, Log, Sample, Source, Value
from teho.jobs.moments import moment_of
from teho.jobs.positions import positions_by_time
from teho.model.missing import Missing
from teho.patterns import lazy_pattern

__all__ = ["IMPORTER"]

_TOOL = "nvidia-smi"
_MIB = 2.0**20
_METRICS: Metrics = {
    "utilization.gpu": ("gpu_busy_percent", 1.0),
    "utilization.memory": ("gpu_memory_busy_percent", 1.0),
    "memory.used": ("gpu_memory_used_bytes", _MIB),
    # Newer drivers average `power.draw` over a second.
    "power.draw.average": ("gpu_power_w", 1.0),
    "power.draw": ("gpu_power_w", 1.0),
    "power.draw.instant": ("gpu_power_w", 1.0),
    "temperature.gpu": ("gpu_temperature_c", 1.0),
    "clocks.gr": ("gpu_sm_clock_mhz", 1.0),
    "clocks.current.graphics": ("gpu_sm_clock_mhz", 1.0),
    "clocks.sm": ("gpu_sm_clock_mhz", 1.0),
    "clocks.current.sm": ("gpu_sm_clock_mhz", 1.0),
    "clocks.mem": ("gpu_memory_clock_mhz", 1.0),
    "clocks.current.memory": ("gpu_memory_clock_mhz", 1.0),
    "ecc.errors.corrected.aggregate.total": ("gpu_ecc_corrected", 1.0),
    "ecc.errors.corrected.volatile.total": ("gpu_ecc_corrected", 1.0),
    "ecc.errors.uncorrected.aggregate.total": ("gpu_ecc_uncorrected", 1.0),
    "ecc.errors.uncorrected.volatile.total": ("gpu_ecc_uncorrected", 1.0),
}
_REASON_COLUMN = lazy_pattern(r"clocks_(?:throttle|event)_reasons\.(\w+)")
_REASONS = {
    "sw_thermal_slowdown": "gpu_thermal_throttle_percent",
    "hw_thermal_slowdown": "gpu_thermal_throttle_percent",
    "sw_power_cap": "gpu_power_throttle_percent",
    "hw_power_brake_slowdown": "gpu_power_throttle_percent",
}
_THERMAL_BITS, _POWER_BITS = 0x20 | 0x40, 0x04 | 0x80
"""Bits of `clocks_event_reasons.active`: NVML's nvmlClocksEventReason constants."""
_TIMES = frozenset({"timestamp", "time", "date"})
_HOSTS = frozenset({"hostname", "host", "node", "nodename"})
_IDENTITY = frozenset(
    {"index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "gpu_serial", "serial"}
)
_FACTS = frozenset({"name", "gpu_name", "memory.total", "power.limit", "enforced.power.limit"})
_WORD = lazy_pattern(r"[a-z][a-z0-9_. -]*(?:\s*\[[^\]]*\])?")
_SEPARATORS = (", ", ",", ";", "\t")
_CELLS = lazy_pattern(r"[,;\t]")
_VALUE = lazy_pattern(r"\d+(?:\.\d+)?\s*(?:%|MHz|MiB|W)?", re.ASCII)
"""A cell such as `37 %` or `412.5`."""
_TEXT = lazy_pattern(r"[\w.:/\[\]-]+(?: [\w.:/\[\]-]+){0,5}")
"""A cell such as `[N/A]`, a time or the name of a GPU: a few words."""


class _Columns(NamedTuple):
    """The line of names."""

    names: tuple[str, ...]
    separator: str
    measured: tuple[tuple[int, str, float | None], ...]
    """Place and name of each column with a metric, and the factor of the unit in its head."""

    def known(self) -> int:
        """Return the number of columns that Teho uses."""
        return sum(map(_is_used, self.names))


class NvidiaSmiQuery(Importer):
    """The CSV of `nvidia-smi --query-gpu`."""

    title = "nvidia-smi --query-gpu"
    written_by = "nvidia-smi --query-gpu=… --format=csv -l N"
    place = 10

    def recognises(self, source: Source) -> bool:
        """Return whether a line has names of columns, or the user gave them."""
        return bool(source.columns) or any(map(_columns_of, source.lines(LINES_BEFORE)))

    def advice(self, source: Source) -> str:
        """Name --columns if a line can be a row of the output with `noheader`."""
        if any(map(_is_row, source.lines(LINES_BEFORE))):
            return (
                "if nvidia-smi was called with noheader, add `--columns` with its list after "
                "--query-gpu="
            )
        return ""

    def read(self, source: Source) -> Log:
        """Read all rows; lines of other programs are counted."""
        log = Log(tool=_TOOL)
        columns = _given(source.columns)
        if columns and not columns.measured:
            raise InputError(
                f"--columns {','.join(source.columns)}: no column that Teho uses",
                "the list after --query-gpu=, such as timestamp,index,utilization.gpu",
            )
        keyless: list[_Keyless] = []
        since: float | None = None
        for line in source.lines():
            if not line.strip():
                continue
            if head := _columns_of(line):
                columns = head
                continue
            row = _cells(line, columns) if columns else None
            if columns and row is not None and (sample := _sample(columns, row, since, log)):
                if sample.device == "":
                    facts = _facts(dict(zip(columns.names, row, strict=True)))
                    keyless.append(_Keyless(len(log.samples), facts))
                log.samples.append(sample)
            elif (at_s := log.time_above(line)) is not None:
                since = at_s
            else:
                log.skipped_lines += 1
        if columns is None:
            raise InputError(
                f"{source.path} has no line with the names of the columns",
                "the output of nvidia-smi without `noheader`",
                "add `--columns` with the list after --query-gpu=",
            )
        log.has_times_of_blocks &= _TIMES.isdisjoint(columns.names)
        _name_gpus(log, keyless, source)
        for name in columns.names:
            if not _is_used(name):
                log.unused.setdefault(name)
        return log


def _is_row(line: str) -> bool:
    """Return whether a line can be a row: values, and short texts such as the name of a GPU."""
    cells = [cell.strip() for cell in _CELLS.split(line)]
    values = [bool(_VALUE.fullmatch(cell)) for cell in cells]
    texts = (cell for cell, is_value in zip(cells, values, strict=True) if not is_value)
    return any(values) and all(map(_TEXT.fullmatch, texts))


def _columns_of(line: str) -> _Columns | None:
    """Return the names in a line; None if it is not a line of names."""
    if not line.lstrip(' "')[:1].isalpha():
        return None  # most lines are rows, and begin with a time or an index
    for separator in _SEPARATORS:
        cells = [cell.strip().strip('"').lower() for cell in line.split(separator)]
        if not all(map(_WORD.fullmatch, cells)):
            continue
        found = _named(cells, separator)
        # One word, such as `name`, may be a line of any program.
        if found.known() >= min(2, len(cells)) and found.measured:
            return found
    return None


def _given(columns: Sequence[str]) -> _Columns | None:
    return _named([name.strip().lower() for name in columns], ", ") if columns else None


def _named(cells: Sequence[str], separator: str) -> _Columns:
    names = [cell.partition("[")[0].strip() for cell in cells]
    units = [cell.partition("[")[2].strip(" ]") for cell in cells]
    factors = [UNITS.get(unit) for unit in units]
    measured = [
        (place, name, factors[place]) for place, name in enumerate(names) if _is_measured(name)
    ]
    return _Columns(tuple(names), separator, tuple(measured))


def _is_used(name: str) -> bool:
    return _is_measured(name) or name in _TIMES | _HOSTS | _IDENTITY | _FACTS


def _is_measured(name: str) -> bool:
    reason = _REASON_COLUMN.fullmatch(name)
    return name in _METRICS or bool(reason and (reason[1] in _REASONS or reason[1] == "active"))


def _cells(line: str, columns: _Columns) -> list[str] | None:
    """Return as many cells as there are columns; None if the line cannot be split like this.

    In some languages, numbers have a decimal comma. It is not followed by a space.
    """
    count = len(columns.names)
    for separator in dict.fromkeys((columns.separator, *_SEPARATORS)):
        cells = csv_cells(line, separator[0]) if '"' in line else line.split(separator)
        if len(cells) == count:
            return [cell.strip() for cell in cells]
    return None


def _sample(
    columns: _Columns, cells: Sequence[str], since: float | None, log: Log
) -> Sample | None:
    """Return the row as a sample; None if a cell does not belong into its column."""
    row = dict(zip(columns.names, cells, strict=True))
    at_s = since
    for name in _TIMES & row.keys():
        moment = moment_of(row[name])
        if moment is None or not moment.has_date:
            return None
        at_s = moment.at_s
        log.has_local_times |= not moment.has_zone
    values: dict[str, Value] = {}
    for place, name, factor in columns.measured:
        found = _values(name, cells[place], factor)
        if found is None:
            return None
        for metric, value in found:
            if not isinstance(value, Missing) or metric not in values:
                values[metric] = value
    index = _index(row.get("index", ""))
    if index is None and "index" in row:
        return None
    node = next((row[name] for name in _HOSTS if name in row), "")
    uuid = row.get("uuid") or row.get("gpu_uuid") or ""
    bus_id = row.get("pci.bus_id") or row.get("gpu_bus_id") or ""
    serial = row.get("serial") or row.get("gpu_serial") or ""
    key = uuid or bus_id or ("" if index is None else str(index)) or serial
    if not key and "index" in row:
        return None
    if key and (node, key) not in log.gpus:
        log.gpus[node, key] = _facts(row)
    return Sample.of(at_s, node, key, values)


def _index(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) <= 3 else None


def _values(name: str, cell: str, factor: float | None) -> list[tuple[str, Value]] | None:
    """Return the values of a cell; None if it does not fit this column."""
    if name in _METRICS:
        metric, default = _METRICS[name]
        value = number_of(cell, default if factor is None else factor, _TOOL)
        return None if value is None else [(metric, value)]
    reason = name.partition(".")[2]
    missing = missing_of(cell, _TOOL)
    if reason == "active":
        metrics = (("gpu_thermal_throttle_percent", _THERMAL_BITS),
                   ("gpu_power_throttle_percent", _POWER_BITS))  # fmt: skip
        if missing:
            return [(metric, missing) for metric, _ in metrics]
        if not re.fullmatch(r"0x[0-9a-fA-F]+", cell):
            return None
        bits = int(cell, 16)
        return [(metric, 100.0 if bits & mask else 0.0) for metric, mask in metrics]
    states: dict[str, Value] = {"active": 100.0, "not active": 0.0}
    state = missing or states.get(cell.lower())
    return None if state is None else [(_REASONS[reason], state)]


def _facts(row: Mapping[str, str]) -> GpuFacts:
    limit = row.get("enforced.power.limit") or row.get("power.limit")
    return GpuFacts(
        index=_index(row.get("index", "")),
        uuid=row.get("uuid") or row.get("gpu_uuid") or "",
        name=row.get("name") or row.get("gpu_name") or "",
        vendor="nvidia",
        memory_bytes=whole_of(row.get("memory.total"), _MIB, _TOOL),
        power_limit_w=whole_of(limit, 1.0, _TOOL),
        pci_bus_id=row.get("pci.bus_id") or row.get("gpu_bus_id") or "",
    )


class _Keyless(NamedTuple):
    """A row that does not name its GPU."""

    place: int
    """Number of its sample."""
    facts: GpuFacts


def _name_gpus(log: Log, keyless: Sequence[_Keyless], source: Source) -> None:
    """Give rows without any name of the GPU the position of their GPU in each round."""
    if not keyless:
        return
    for row, position in zip(keyless, _positions(log, keyless, source), strict=False):
        sample = log.samples[row.place]
        log.samples[row.place] = sample._replace(device=str(position))
        row.facts.index = position
        log.gpus.setdefault((sample.node, str(position)), row.facts)
    count = len({log.samples[row.place].device for row in keyless})
    how = "As you said" if source.gpu_count else "By their times"
    log.notes.append(
        f"The log does not name the GPU of a row. {how}, the rows are from "
        f"{'one GPU' if count == 1 else f'{count} GPUs in turn'}."
    )


def _positions(log: Log, keyless: Sequence[_Keyless], source: Source) -> Iterator[int]:
    if source.gpu_count:
        return cycle(range(source.gpu_count))
    times = [log.samples[row.place].at_s for row in keyless]
    known = [at_s for at_s in times if at_s is not None]
    found = positions_by_time(known) if len(known) == len(times) else None
    if found is None:
        raise InputError(
            f"{source.path} does not say which GPU a row is from",
            "a column index, uuid or pci.bus_id, or a column timestamp with regular times",
            "if all rows are from one GPU, add `--gpus 1`; next time, log with "
            "`--query-gpu=timestamp,index,…`",
        )
    return iter(found)


IMPORTER = NvidiaSmiQuery
