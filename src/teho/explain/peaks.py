"""The peak rates of devices, by the documents of their makers: from `peaks.toml`."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Union

import msgspec

from teho.config.toml import read_toml
from teho.model.device import Device
from teho.model.missing import Missing, Reason
from teho.patterns import lazy_pattern

__all__ = ["RATES", "TENSOR_RATES", "Peaks", "all_peaks", "no_peaks", "peaks_of"]

TENSOR_RATES = ("tensor_fp64_tflops", "tensor_tf32_tflops", "tensor_16bit_tflops")
"""Rates of tensor cores, by what they multiply."""
RATES = ("fp64_tflops", "fp32_tflops", "fp16_tflops", *TENSOR_RATES)
"""Every arithmetic rate that a device may have."""

_FILE = Path(__file__).with_name("peaks.toml")
_MAKER = lazy_pattern(r"^(nvidia |tesla |amd )+", re.IGNORECASE)
_SLICE = lazy_pattern(r" MIG (?:(\d)c\.)?(\d)g\.(\d+)gb", re.IGNORECASE)
_PCIE_LANES = 16
_PCIE_BITS_PER_S = {3: 8e9, 4: 16e9, 5: 32e9}
"""Rate of one lane and direction, by generation (PCI-SIG, base specifications 3.0 to 5.0)."""
_PCIE_CODED = 128 / 130
"""Share of the bits on a lane that are data, from generation 3 on (the same specifications)."""


class Peaks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The peaks of a device or a MIG slice; rates are dense, at the highest clock."""

    names: tuple[str, ...]
    """Product names as drivers report them, without the name of the maker."""
    fp64_tflops: Union[float, None] = None
    """64-bit floating point outside tensor cores, in 10^12 operations per second."""
    fp32_tflops: Union[float, None] = None
    """32-bit floating point, likewise."""
    fp16_tflops: Union[float, None] = None
    """16-bit floating point, likewise."""
    tensor_fp64_tflops: Union[float, None] = None
    """Tensor cores (AMD: matrix cores) with 64 bits."""
    tensor_tf32_tflops: Union[float, None] = None
    """Tensor cores with 32-bit numbers that are rounded to TF32."""
    tensor_16bit_tflops: Union[float, None] = None
    """Tensor cores with FP16 or BF16."""
    memory_gb_per_s: float
    """Bandwidth of the device's memory, in 10^9 bytes per second."""
    memory_gb: Union[float, None] = None
    """Size of the memory that MIG profiles divide; None without MIG."""
    pcie_generation: Union[int, None] = None
    """Generation of the PCIe x16 link to the CPU."""
    lacks: tuple[str, ...] = ()
    """Fields that are None because the device does not have the unit."""
    unknown: tuple[str, ...] = ()
    """Fields that are None because the documents do not state them."""
    source: str
    part: str = ""
    """Description of a MIG slice; empty for a whole device."""

    def flop_per_s(self, rate: str) -> float | None:
        """Return one of `RATES` in operations per second."""
        tflops: float | None = getattr(self, rate)
        return None if tflops is None else tflops * 1e12

    @property
    def memory_bytes_per_s(self) -> float:
        """Bandwidth of the device's memory, in bytes per second."""
        return self.memory_gb_per_s * 1e9

    @property
    def pcie_bytes_per_s(self) -> float | None:
        """Rate of the link to the CPU in one direction, with packet headers."""
        if self.pcie_generation is None:
            return None
        return _PCIE_BITS_PER_S[self.pcie_generation] * _PCIE_LANES * _PCIE_CODED / 8

    @property
    def has_tensor_cores(self) -> bool:
        """Whether the device has tensor cores."""
        return not set(self.lacks) >= set(TENSOR_RATES)


def peaks_of(device: Device) -> Peaks | None:
    """Return the peaks of a device; None if they are not known."""
    sliced = _SLICE.search(device.name)
    whole = _by_name().get(_plain(device.name[: sliced.start()] if sliced else device.name))
    if whole is None or sliced is None:
        return whole
    compute, slices, slice_gb = sliced.groups()
    return _slice_of(whole, int(compute or slices), int(slice_gb))


def no_peaks(device: Device) -> Missing:
    """Return why the peaks of a device are missing."""
    return Missing(Reason.ABSENT, f"the peak rates of {device.name} are not known")


@functools.cache
def all_peaks() -> tuple[Peaks, ...]:
    """Return every device of the file, in the order of the file."""
    return tuple(msgspec.convert(read_toml(_FILE)["device"], list[Peaks]))


@functools.cache
def _by_name() -> dict[str, Peaks]:
    return {_plain(name): peaks for peaks in all_peaks() for name in peaks.names}


def _plain(name: str) -> str:
    return _MAKER.sub("", name).strip().casefold()


def _slice_of(whole: Peaks, compute: int, slice_gb: int) -> Peaks | None:
    """Return the peaks of a MIG slice; None if this device does not have the profile.

    A slice has some sevenths of the multiprocessors and eighths of the memory: NVIDIA's MIG user
    guide, "Supported MIG profiles".
    """
    eighths = round(8 * slice_gb / whole.memory_gb) if whole.memory_gb else 0
    if not eighths:
        return None
    rates = {rate: getattr(whole, rate) for rate in RATES}
    return msgspec.structs.replace(
        whole,
        **{rate: None if full is None else full * compute / 7 for rate, full in rates.items()},
        memory_gb_per_s=whole.memory_gb_per_s * eighths / 8,
        memory_gb=None,
        pcie_generation=None,
        lacks=(*whole.lacks, *({"pcie_generation"} - {*whole.lacks})),
        part=f"the slice has {compute}/7 of the multiprocessors and {eighths}/8 of the memory "
        "bandwidth of the whole GPU",
    )
