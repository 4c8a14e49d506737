"""The system metrics of Weights & Biases: `wandb-events.jsonl`, or its history as CSV.

The names are from the page "System metrics" of docs.wandb.ai. Only the metrics of GPUs are read:
the meaning of the CPU metrics differs between the versions of W&B.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from teho.jobs.cells import Metrics, csv_cells, values_of
from teho.jobs.importer import LINES_BEFORE, Importer
from teho.jobs.json_stream import pieces_of
from teho.jobs.log import Log, Sample, Source
from teho.jobs.moments import moment_of
from teho.patterns import lazy_pattern

__all__ = ["IMPORTER"]

_TOOL = "Weights & Biases"
_METRICS: Metrics = {
    "gpu": ("gpu_busy_percent", 1.0),
    # Of NVIDIA: the time in which the memory was read or written, not its content.
    "memory": ("gpu_memory_busy_percent", 1.0),
    "memoryReadWriteActivity": ("gpu_memory_busy_percent", 1.0),
    "memoryAllocatedBytes": ("gpu_memory_used_bytes", 1.0),
    "temp": ("gpu_temperature_c", 1.0),
    "powerWatts": ("gpu_power_w", 1.0),
    "smClock": ("gpu_sm_clock_mhz", 1.0),
    "memoryClock": ("gpu_memory_clock_mhz", 1.0),
    "correctedMemoryErrors": ("gpu_ecc_corrected", 1.0),
    "uncorrectedMemoryErrors": ("gpu_ecc_uncorrected", 1.0),
}
_OF_AMD = frozenset({"memoryReadWriteActivity", "memoryOverDrive"})
_LIMIT = "enforcedPowerLimitWatts"
_NAME = lazy_pattern(r"(?:system[./])?gpu\.(\d+)\.(\w+)")
_TIME = "_timestamp"


class Wandb(Importer):
    """One line, in JSON or CSV, for each time."""

    title = "Weights & Biases"
    written_by = "Weights & Biases, wandb-events.jsonl or run.history(stream='events').to_csv(…)"
    place = 60

    def recognises(self, source: Source) -> bool:
        """Return whether a line has a time and the metrics of a GPU."""
        return any(
            _TIME in line and re.search(r"(?:system[./])gpu\.\d+\.", line)
            for line in source.lines(LINES_BEFORE)
        )

    def read(self, source: Source) -> Log:
        """Read all lines with metrics of a GPU."""
        log = Log(tool=_TOOL)
        for row in _rows(source.text, log):
            moment = moment_of(str(row.get(_TIME, "")))
            gpus: dict[str, dict[str, str]] = {}
            for name, value in row.items():
                if match := _NAME.fullmatch(name):
                    gpus.setdefault(match[1], {})[match[2]] = "" if value is None else str(value)
                elif not name.startswith("_") and value is not None:
                    log.unused.setdefault(name)
            if moment is None:
                log.skipped_lines += bool(gpus)
                continue
            log.has_local_times |= not moment.has_zone
            for key, cells in gpus.items():
                _add(key, cells, moment.at_s, log)
        return log


def _rows(text: str, log: Log) -> Iterator[Mapping[str, Any]]:
    """Yield the lines as dictionaries."""
    names: list[str] = []
    for piece in pieces_of(text):
        if isinstance(piece.value, dict):
            yield piece.value
            continue
        cells = csv_cells(piece.line)
        if _TIME in cells:
            names = cells
        elif names and len(cells) == len(names):
            # An empty cell: this line is of other metrics.
            yield {name: cell for name, cell in zip(names, cells, strict=True) if cell}
        else:
            log.skipped_lines += 1


def _add(key: str, cells: Mapping[str, str], at_s: float, log: Log) -> None:
    values = values_of(cells, _METRICS, _TOOL)
    if not values:
        return
    facts = log.gpu("", key)
    facts.index = int(key)
    if not facts.vendor or _OF_AMD & cells.keys():
        facts.vendor = "amd" if _OF_AMD & cells.keys() else "nvidia"
    limit_w = cells.get(_LIMIT, "")
    if limit_w.replace(".", "", 1).isdecimal():
        facts.power_limit_w = float(limit_w)
    log.samples.append(Sample.of(at_s, "", key, values))


IMPORTER = Wandb
