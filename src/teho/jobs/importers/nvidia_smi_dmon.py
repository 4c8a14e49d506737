"""`nvidia-smi dmon`, with any `-s` and with or without `-o DT`.

The columns are explained by `nvidia-smi dmon --help`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from teho.jobs.cells import Metrics, values_of
from teho.jobs.importer import LINES_BEFORE, Importer
from teho.jobs.log import Log, Sample, Source
from teho.jobs.moments import moment_of
from teho.jobs.rows import read_rows
from teho.patterns import lazy_pattern

__all__ = ["IMPORTER"]

_TOOL = "nvidia-smi dmon"
_MIB = 2.0**20
_METRICS: Metrics = {
    "pwr": ("gpu_power_w", 1.0),
    "gtemp": ("gpu_temperature_c", 1.0),
    "temp": ("gpu_temperature_c", 1.0),
    "sm": ("gpu_busy_percent", 1.0),
    "mem": ("gpu_memory_busy_percent", 1.0),
    "mclk": ("gpu_memory_clock_mhz", 1.0),
    "pclk": ("gpu_sm_clock_mhz", 1.0),
    "fb": ("gpu_memory_used_bytes", _MIB),
    "rxpci": ("gpu_pcie_receive_bytes_per_s", 1e6),
    "txpci": ("gpu_pcie_send_bytes_per_s", 1e6),
    "sbecc": ("gpu_ecc_corrected", 1.0),
    "dbecc": ("gpu_ecc_uncorrected", 1.0),
}
"""Column -> its metric, and the factor of its unit. `MB` of memory are MiB, but not of PCIe.

`pviol` and `tviol` are not here: drivers print them as percent, or only as 0 and 1.
"""
_GPU, _DATE, _TIME = "gpu", "date", "time"
_SPLIT = lazy_pattern(r"[,\s]+")
_HEAD = lazy_pattern(r"#\s*(?:date|time|gpu)[,\s].*", re.IGNORECASE)


class NvidiaSmiDmon(Importer):
    """The table of `nvidia-smi dmon`, or its CSV."""

    title = "nvidia-smi dmon"
    written_by = "nvidia-smi dmon -o DT"
    place = 20

    def recognises(self, source: Source) -> bool:
        """Return whether a line has the names of dmon's columns."""
        return any(_names(line) for line in source.lines(LINES_BEFORE))

    def read(self, source: Source) -> Log:
        """Read all rows. The names and units are repeated every few rows."""
        log = Log(tool=_TOOL)

        def add(line: str, names: list[str], since: float | None) -> bool:
            if not line.strip() or line.lstrip().startswith("#"):
                return True  # the units
            sample = _sample(names, _SPLIT.split(line.strip()), since, log) if names else None
            log.samples += [sample] if sample else []
            return sample is not None

        names = read_rows(source.lines(), log, names_of=_names, add=add)
        log.has_dates = _DATE in names or _TIME not in names
        log.keep_unused(names, {*_METRICS, _GPU, _DATE, _TIME})
        return log


def _names(line: str) -> list[str]:
    """Return the names of the columns; empty if it is another line."""
    if not _HEAD.fullmatch(line.strip()):
        return []
    names = [name for name in _SPLIT.split(line.strip().lstrip("#").strip().lower()) if name]
    return names if _GPU in names and _METRICS.keys() & set(names) else []


def _sample(
    names: Sequence[str], cells: Sequence[str], since: float | None, log: Log
) -> Sample | None:
    """Return a row as a sample; None if it is not a row of this table."""
    cells = [cell for cell in cells if cell]
    if len(cells) != len(names):
        return None
    row = dict(zip(names, cells, strict=True))
    if not row[_GPU].isdecimal():
        return None
    at_s = since
    if _TIME in row:
        moment = moment_of(f"{row.get(_DATE, '')} {row[_TIME]}")
        if moment is None:
            return None
        at_s = moment.at_s
        log.has_local_times |= not moment.has_zone
    values = values_of(row, _METRICS, _TOOL)
    if values is None:
        return None
    facts = log.gpu("", row[_GPU])
    facts.index, facts.vendor = int(row[_GPU]), "nvidia"
    return Sample.of(at_s, "", row[_GPU], values)


IMPORTER = NvidiaSmiDmon
