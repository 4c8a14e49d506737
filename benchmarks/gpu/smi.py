"""Read figures from the output of `nvidia-smi`."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

__all__ = ["dmon_figures", "query_figures"]

_MIB = 2**20
_QUERY = {
    "gpu_busy_percent": (("utilization/gpu_util",), 1),
    "gpu_memory_busy_percent": (("utilization/memory_util",), 1),
    "gpu_memory_used_bytes": (("fb_memory_usage/used",), _MIB),
    "gpu_power_w": (
        (
            "gpu_power_readings/instant_power_draw",
            "gpu_power_readings/power_draw",
            "power_readings/power_draw",
        ),
        1,
    ),
    "gpu_temperature_c": (("temperature/gpu_temp",), 1),
    "gpu_sm_clock_mhz": (("clocks/sm_clock",), 1),
    "gpu_memory_clock_mhz": (("clocks/mem_clock",), 1),
    "gpu_pcie_receive_bytes_per_s": (("pci/rx_util",), 1000),
    "gpu_pcie_send_bytes_per_s": (("pci/tx_util",), 1000),
    "gpu_ecc_corrected": (
        ("ecc_errors/volatile/dram_correctable", "ecc_errors/volatile/single_bit/total"),
        1,
    ),
}
"""For each metric of Teho: its places in `nvidia-smi -q -x`, newest driver first, and its unit."""
_DMON = {
    "gpu_busy_percent": ("sm", 1),
    "gpu_memory_busy_percent": ("mem", 1),
    "gpu_memory_used_bytes": ("fb", _MIB),
    "gpu_power_w": ("pwr", 1),
    "gpu_temperature_c": ("gtemp", 1),
    "gpu_sm_clock_mhz": ("pclk", 1),
    "gpu_memory_clock_mhz": ("mclk", 1),
    "gpu_pcie_receive_bytes_per_s": ("rxpci", 1e6),
    "gpu_pcie_send_bytes_per_s": ("txpci", 1e6),
}
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def query_figures(xml: str) -> dict[str, float | str]:
    """Return the figures of the first GPU in `nvidia-smi -q -x`, by the names of Teho's metrics.

    If a figure is missing, its value is a text.

    Raises:
        ValueError: the text is not the output of this command.
    """
    try:
        gpu = ET.fromstring(re.sub(r"<!DOCTYPE[^>]*>", "", xml)).find("gpu")
    except ET.ParseError as error:
        raise ValueError(f"nvidia-smi -q -x: {error}") from error
    if gpu is None:
        raise ValueError("nvidia-smi -q -x: it names no GPU")
    found: dict[str, float | str] = {}
    for metric, (paths, unit) in _QUERY.items():
        text = next((text for path in paths if (text := gpu.findtext(path))), "not printed")
        number = _NUMBER.match(text)
        found[metric] = float(number[0]) * unit if number else text
    for element in gpu.iter():
        if element.tag.startswith(("clocks_event_reason_", "clocks_throttle_reason_")):
            found[element.tag] = (element.text or "").strip()
    return found


def dmon_figures(text: str) -> dict[str, float | str]:
    """Return the means of the first GPU in `nvidia-smi dmon`, by the names of Teho's metrics.

    Raises:
        ValueError: the text is not the output of this command.
    """
    lines = text.splitlines()
    heads = next((line.lstrip("# ").split() for line in lines if line.startswith("#")), [])
    rows = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    rows = [row for row in rows if row[0] == "0" and len(row) == len(heads)]
    if not heads or not rows:
        raise ValueError(f"nvidia-smi dmon: no table in {text[:100]!r}")
    found: dict[str, float | str] = {}
    for metric, (head, unit) in _DMON.items():
        cells = [row[heads.index(head)] for row in rows] if head in heads else ["not printed"]
        numbers = [float(cell) for cell in cells if _NUMBER.fullmatch(cell)]
        found[metric] = unit * sum(numbers) / len(numbers) if numbers else cells[0]
    return found
