"""`dcgmi dmon -e FIELDS`, the monitor of NVIDIA's DCGM.

The short names of the fields are from `dcgm_fields.cpp` in NVIDIA/DCGM, the units from its field
identifiers: activities are shares of 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from teho.jobs.cells import Metrics, values_of, whole_of
from teho.jobs.importer import LINES_BEFORE, Importer
from teho.jobs.log import Log, Sample, Source
from teho.jobs.rows import read_rows

__all__ = ["IMPORTER"]

_TOOL = "dcgmi dmon"
_MIB, _PERCENT = 2.0**20, 100.0
_METRICS: Metrics = {
    # A MIG instance has no busy share; this is nearest to it.
    "GRACT": ("gpu_busy_percent", _PERCENT),
    "GPUTL": ("gpu_busy_percent", 1.0),
    "MCUTL": ("gpu_memory_busy_percent", 1.0),
    "SMACT": ("gpu_sm_active_percent", _PERCENT),
    "SMOCC": ("gpu_sm_occupancy_percent", _PERCENT),
    "TENSO": ("gpu_tensor_percent", _PERCENT),
    "DRAMA": ("gpu_dram_percent", _PERCENT),
    "FP64A": ("gpu_fp64_percent", _PERCENT),
    "FP32A": ("gpu_fp32_percent", _PERCENT),
    "FP16A": ("gpu_fp16_percent", _PERCENT),
    "POWER": ("gpu_power_w", 1.0),
    "POWINST": ("gpu_power_w", 1.0),
    "TOTEC": ("gpu_energy_j", 1e-3),
    "TMPTR": ("gpu_temperature_c", 1.0),
    "SMCLK": ("gpu_sm_clock_mhz", 1.0),
    "MMCLK": ("gpu_memory_clock_mhz", 1.0),
    "FBUSD": ("gpu_memory_used_bytes", _MIB),
    "ESVTL": ("gpu_ecc_corrected", 1.0),
    "EDVTL": ("gpu_ecc_uncorrected", 1.0),
    "PCITX": ("gpu_pcie_send_bytes_per_s", 1.0),
    "PCIRX": ("gpu_pcie_receive_bytes_per_s", 1.0),
    "NVLTX": ("gpu_nvlink_send_bytes_per_s", 1.0),
    "NVLRX": ("gpu_nvlink_receive_bytes_per_s", 1.0),
}
_TOTAL, _LIMIT = "FBTTL", "PMLMT"


class DcgmiDmon(Importer):
    """The table of `dcgmi dmon`."""

    title = "dcgmi dmon"
    written_by = "dcgmi dmon -e 203,1002,1004,155,156,252 -d 1000"
    place = 30

    def recognises(self, source: Source) -> bool:
        """Return whether a line has the names of fields."""
        return any(_names(line) for line in source.lines(LINES_BEFORE))

    def read(self, source: Source) -> Log:
        """Read the rows of whole GPUs; rows of other entities are counted as skipped."""
        log = Log(tool=_TOOL)

        def add(line: str, names: list[str], since: float | None) -> bool:
            words = line.split()
            if not words or words[0] in {"ID", "Id"}:
                return True  # the units
            sample = _sample(names, words, since, log) if names else None
            log.samples += [sample] if sample else []
            return sample is not None

        names = read_rows(source.lines(), log, names_of=_names, add=add)
        log.keep_unused(names, {*_METRICS, _TOTAL, _LIMIT})
        return log


def _names(line: str) -> list[str]:
    """Return the short names of the fields; empty if it is another line."""
    words = line.replace("#", " ").split()
    if not line.lstrip().startswith("#") or words[:1] != ["Entity"]:
        return []
    return words[1:]


def _sample(
    names: Sequence[str], words: Sequence[str], since: float | None, log: Log
) -> Sample | None:
    """Return a row of a GPU as a sample; None if it is another line."""
    if len(words) != len(names) + 2 or words[0] != "GPU" or not words[1].isdecimal():
        return None
    row = dict(zip(names, words[2:], strict=True))
    values = values_of(row, _METRICS, _TOOL)
    if values is None:
        return None
    facts = log.gpu("", words[1])
    facts.index, facts.vendor = int(words[1]), "nvidia"
    facts.memory_bytes = whole_of(row.get(_TOTAL), _MIB, _TOOL) or facts.memory_bytes
    facts.power_limit_w = whole_of(row.get(_LIMIT), 1.0, _TOOL) or facts.power_limit_w
    return Sample.of(since, "", words[1], values)


IMPORTER = DcgmiDmon
