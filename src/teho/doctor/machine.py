"""Reads what the kernel reports without delay: limits, NUMA nodes, the clock, device files."""

from __future__ import annotations

import ctypes
import os
import resource
from pathlib import Path

from teho.devices.procfile import read_text
from teho.devices.sources import VENDORS
from teho.doctor.snapshot import ClockState, ResourceLimits
from teho.errors import InputError
from teho.launch.gpus import parse_cores
from teho.model.missing import Missing, Reason

__all__ = [
    "cores_of_numa",
    "gpu_files",
    "has_fabric",
    "read_clock",
    "read_limits",
    "threads_per_core",
]

_UNSYNCHRONISED = 0x40
"""STA_UNSYNC of <sys/timex.h>."""
_OUT_OF_SYNC = 5
"""TIME_ERROR: adjtimex(2) returns it as well if the clock is not synchronised."""


class _Timex(ctypes.Structure):
    """The beginning of `struct timex` of adjtimex(2). `rest` only reserves space."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_byte * 512),
    )


def read_limits() -> ResourceLimits:
    """Return the limits of this process. Programs that it starts inherit them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return ResourceLimits(
        open_files=_limit(soft),
        open_files_most=_limit(hard),
        address_space_bytes=_limit(resource.getrlimit(resource.RLIMIT_AS)[0]),
        locked_memory_bytes=_limit(resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]),
    )


def _limit(value: int) -> int | None:
    return None if value == resource.RLIM_INFINITY else value


def cores_of_numa(root: Path) -> dict[int, frozenset[int]]:
    """Return the logical CPUs of each NUMA node; empty if the kernel does not report them."""
    found = {}
    for folder in (root / "sys/devices/system/node").glob("node[0-9]*"):
        try:
            found[int(folder.name[4:])] = frozenset(parse_cores(read_text(folder / "cpulist")))
        except (InputError, ValueError):
            continue
    return {number: cores for number, cores in sorted(found.items()) if cores}


def threads_per_core(root: Path) -> int:
    """Return 2 if hardware threads are in use, else 1 (kernel, ABI of devices/system/cpu)."""
    return 2 if read_text(root / "sys/devices/system/cpu/smt/active") == "1" else 1


def read_clock() -> ClockState | Missing:
    """Return whether the clock is synchronised, by the kernel."""
    timex = _Timex()
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(timex))
    except (OSError, AttributeError) as error:
        return Missing(Reason.UNSUPPORTED, str(error))
    if state < 0:
        return Missing(Reason.FORBIDDEN, f"adjtimex: {os.strerror(ctypes.get_errno())}")
    return ClockState(
        is_synchronised=state != _OUT_OF_SYNC and not timex.status & _UNSYNCHRONISED,
        error_s=timex.maxerror / 1e6,
    )


def has_fabric(root: Path) -> bool:
    """Return whether the node has InfiniBand or RDMA over Ethernet."""
    return any((root / "sys/class/infiniband").glob("*"))


def gpu_files(root: Path) -> tuple[str, ...]:
    """Return the device files of every vendor's GPUs."""
    patterns = [vendor.device_files for vendor in VENDORS.values() if vendor.device_files]
    found = [path for pattern in patterns for path in sorted((root / "dev").glob(pattern))]
    return tuple(f"/{path.relative_to(root)}" for path in found)
