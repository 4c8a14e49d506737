"""The profiling fields of NVIDIA's DCGM: numbers, names and metrics.

Source: `dcgm_fields.h` of DCGM. PCIe and NVLink directions are the GPU's: it transmits to the host,
or to other GPUs.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from teho.model.device import Reading
from teho.model.missing import Missing, Reason

__all__ = ["BLANK", "FIELDS", "METRICS", "ONE_PASS", "WATCHED", "Entity", "Field", "value_of"]


class Entity(NamedTuple):
    """A GPU or MIG instance, as DCGM identifies it."""

    uuid: str
    """UUID of the physical GPU."""
    instance: int | None = None
    """NVML's number of the GPU instance; None for the whole GPU."""


class Field(NamedTuple):
    """One profiling field."""

    number: int
    name: str
    metric: str
    factor: int
    """Factor from DCGM's unit to the metric's: ratios are 0 to 1, traffic is in bytes/s."""


FIELDS: tuple[Field, ...] = (
    Field(1002, "DCGM_FI_PROF_SM_ACTIVE", "gpu_sm_active_percent", 100),
    Field(1003, "DCGM_FI_PROF_SM_OCCUPANCY", "gpu_sm_occupancy_percent", 100),
    Field(1004, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gpu_tensor_percent", 100),
    Field(1005, "DCGM_FI_PROF_DRAM_ACTIVE", "gpu_dram_percent", 100),
    Field(1006, "DCGM_FI_PROF_PIPE_FP64_ACTIVE", "gpu_fp64_percent", 100),
    Field(1007, "DCGM_FI_PROF_PIPE_FP32_ACTIVE", "gpu_fp32_percent", 100),
    Field(1008, "DCGM_FI_PROF_PIPE_FP16_ACTIVE", "gpu_fp16_percent", 100),
    Field(1009, "DCGM_FI_PROF_PCIE_TX_BYTES", "gpu_pcie_send_bytes_per_s", 1),
    Field(1010, "DCGM_FI_PROF_PCIE_RX_BYTES", "gpu_pcie_receive_bytes_per_s", 1),
    Field(1011, "DCGM_FI_PROF_NVLINK_TX_BYTES", "gpu_nvlink_send_bytes_per_s", 1),
    Field(1012, "DCGM_FI_PROF_NVLINK_RX_BYTES", "gpu_nvlink_receive_bytes_per_s", 1),
    Field(1016, "DCGM_FI_PROF_PIPE_INT_ACTIVE", "gpu_integer_percent", 100),
)
METRICS: tuple[str, ...] = tuple(field.metric for field in FIELDS)

WATCHED: tuple[Field, ...] = tuple(field for field in FIELDS if field.number != 1016)
"""Fields that every release of DCGM since Volta knows. One unknown field makes the whole list fail.
Ampere has no counter of the integer pipe anyway."""

ONE_PASS: tuple[Field, ...] = tuple(field for field in WATCHED if field.number not in {1006, 1008})
"""Fields that an A100 counts at the same time. FP64 and FP16 are in subgroups A.2 and A.3 of
`dcgmi profile --list`, and only one subgroup of a letter runs at a time."""

BLANK = Missing(Reason.UNSUPPORTED, "DCGM does not have this metric for this GPU (N/A)")

# DCGM_FP64_BLANK is 2^47, DCGM_INT64_BLANK 2^63 - 16. Larger numbers are reasons. No link carries
# 2^47 bytes/s.
_SMALLEST_BLANK = 2.0**47
# Ratios are quotients of two counters that are read at slightly different times.
_MOST_PERCENT = 105


def value_of(text: str, field: Field) -> Reading:
    """Return DCGM's value of a field, in the metric's unit."""
    if text == "N/A":
        return BLANK
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if number >= _SMALLEST_BLANK:
        return BLANK
    value = number * field.factor
    if math.isnan(value) or value < 0 or (field.factor == 100 and value > _MOST_PERCENT):
        return Missing(
            Reason.FAILED,
            f"DCGM's value of field {field.number} is not a possible value: {text[:40]!r}",
        )
    return min(value, 100.0) if field.factor == 100 else value
