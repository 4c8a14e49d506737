"""Errors of a GPU: of memory (ECC), of NVLink, and the driver's Xid errors.

Xid errors are also in the kernel's log, which most users may not read. The driver reports them
through an event set, which keeps them until they are read.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping
from ctypes import c_void_p, cast
from pathlib import Path
from typing import Any

import pynvml

from teho.devices.nvidia.devices import Handle, Instance, ask, missing_for
from teho.devices.nvidia.signals import HARDLY_EVER, Out, Signal, fields
from teho.model.device import Device, Reading
from teho.model.missing import Missing

__all__ = ["XID_ERRORS", "Xids", "error_signals", "link_count"]

XID_ERRORS = "gpu_xid_errors"

_ECC = {
    "gpu_ecc_corrected": pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED,
    "gpu_ecc_uncorrected": pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
}

_OF_ALL_LINKS = (
    pynvml.NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL,
    pynvml.NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL,
    pynvml.NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL,
    pynvml.NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL,
)
_OF_ONE_LINK = (
    pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY,
    pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY,
    pynvml.NVML_FI_DEV_NVLINK_ERROR_DL_CRC,
)
_NOT_COUNTED = frozenset({pynvml.NVML_ERROR_NOT_SUPPORTED})
"""Some generations do not count every kind of error."""

_NO_INSTANCE = 2**32 - 1
_CATALOGUE = Path(__file__).with_name("xid_errors.txt")
"""Common errors of NVIDIA's catalogue (docs.nvidia.com/deploy/xid-errors), in our own words."""
_MOST_EVENTS = 1000
"""Limit for one reading, in case the driver reports errors faster than they are read."""


def link_count(handle: Handle) -> int | None:
    """Return the number of a GPU's NVLinks; None if the driver does not report it."""
    counts: list[int] = ask(fields, handle, pynvml.NVML_FI_DEV_NVLINK_LINK_COUNT, otherwise=[])
    return counts[0] if counts else None


def error_signals(links: int | None) -> list[Signal]:
    """Return the signals for the ECC and NVLink counters of one GPU."""
    signals = [Signal(tuple(_ECC), _ecc, every=HARDLY_EVER)]
    if links != 0:
        nvlink = _NvlinkErrors(links or 0)
        ways = (nvlink.of_all, nvlink.of_each) if links else (nvlink.of_all,)
        signals.append(Signal(("gpu_nvlink_errors",), *ways, every=HARDLY_EVER))
    return signals


def _ecc(handle: Handle, out: Out) -> None:
    # Errors since the driver was loaded. The aggregate counters cover the GPU's whole life.
    for name, kind in _ECC.items():
        out[name] = pynvml.nvmlDeviceGetTotalEccErrors(handle, kind, pynvml.NVML_VOLATILE_ECC)


class _NvlinkErrors:
    """Errors of all NVLinks of one GPU: the driver's totals, or the sum over links (Hopper)."""

    def __init__(self, links: int) -> None:
        self._each = [(field, link) for link in range(links) for field in _OF_ONE_LINK]

    def of_all(self, handle: Handle, out: Out) -> None:
        out["gpu_nvlink_errors"] = sum(fields(handle, *_OF_ALL_LINKS, besides=_NOT_COUNTED))

    def of_each(self, handle: Handle, out: Out) -> None:
        out["gpu_nvlink_errors"] = sum(fields(handle, *self._each, besides=_NOT_COUNTED))


class Xids:
    """The Xid errors of some GPUs from now on: their number, and alerts.

    Args:
        handles: the job's devices.
        instances: the MIG instances among them, by device id.
    """

    def __init__(self, handles: Mapping[Device, Handle], instances: Mapping[str, Instance]) -> None:
        self._own: list[tuple[int | None, Device, Instance | None]] = []
        """The job's devices. An event names a GPU by the address of its handle."""
        self._readings: dict[str, Reading] = {}
        self._alerts: list[str] = []
        try:
            self._set: Any = pynvml.nvmlEventSetCreate()
        except pynvml.NVMLError as error:
            self._set = None
            missing = missing_for(error.value)
            self._readings = {device.id: missing for device in handles}
            return
        registered: dict[int | None, Reading] = {}
        for device, handle in handles.items():
            instance = instances.get(device.id)
            whole = instance.gpu if instance else handle
            address = _address(whole)
            if address not in registered:
                registered[address] = self._register(whole)
            self._readings[device.id] = registered[address]
            self._own.append((address, device, instance))

    def _register(self, handle: Handle) -> Reading:
        try:
            pynvml.nvmlDeviceRegisterEvents(handle, pynvml.nvmlEventTypeXidCriticalError, self._set)
        except pynvml.NVMLError as error:
            return missing_for(error.value)
        return 0

    def read(self) -> dict[str, Reading]:
        """Return the number of errors so far, by device id, without waiting."""
        failure = self._drain() if self._set is not None else None
        if failure is None:
            return self._readings
        return {
            id_: known if isinstance(known, Missing) else failure
            for id_, known in self._readings.items()
        }

    def _drain(self) -> Missing | None:
        for _ in range(_MOST_EVENTS):
            try:
                event = pynvml.nvmlEventSetWait_v2(self._set, 0)
            except pynvml.NVMLError as error:
                is_done = error.value == pynvml.NVML_ERROR_TIMEOUT
                return None if is_done else missing_for(error.value)
            if event.eventType == pynvml.nvmlEventTypeXidCriticalError:
                self._note(event)
        return None

    def _note(self, event: Any) -> None:
        address, part, code = _address(event.device), event.gpuInstanceId, event.eventData
        meaning = _meanings().get(code, "")
        for gpu, device, instance in self._own:
            # Ignore errors of other jobs' instances.
            others = instance and part not in {_NO_INSTANCE, instance.gpu_instance}
            if gpu != address or others:
                continue
            count = self._readings[device.id]
            self._readings[device.id] = count + 1 if isinstance(count, int) else count
            name = f"GPU {device.index}"
            if instance:
                name = f"MIG instance {device.index} of GPU {instance.gpu_index}"
            self._alerts.append(f"{name}: Xid {code}{meaning}")

    def alerts(self) -> list[str]:
        """Return sentences about the errors since the last call."""
        alerts, self._alerts = self._alerts, []
        return alerts

    def close(self) -> None:
        """Free the event set; can be called twice."""
        if self._set is not None:
            with contextlib.suppress(pynvml.NVMLError):
                pynvml.nvmlEventSetFree(self._set)
            self._set = None


@functools.cache
def _meanings() -> dict[int, str]:
    """Return the meaning of each Xid code, in parentheses."""
    rows = (line.partition(" ") for line in _CATALOGUE.read_text().splitlines())
    return {int(code): f" ({meaning})" for code, _, meaning in rows}


def _address(handle: Handle) -> int | None:
    """Return the address of a handle, because the binding makes a new object at each call."""
    return cast(handle, c_void_p).value
