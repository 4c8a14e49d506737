"""Errors that a GPU or its driver has counted: of memory, of NVLink, and what the driver reported.

The driver's reports are its Xid errors, which also are in the kernel's log, where users
mostly may not look. They come through an event set, which keeps them until they are asked for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from ctypes import c_void_p, cast
from typing import Any

import pynvml

from teho.devices.nvidia.devices import Handle, Instance, missing_for
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
"""Not every generation counts every kind."""

_MEANINGS = {
    13: "an exception in a kernel, such as an access out of bounds",
    31: "a page fault: a kernel used an address that it may not",
    32: "a damaged stream of commands",
    43: "the GPU stopped a program after an error of the program's own",
    45: "a program's work was removed, after another error or because it was killed",
    48: "an error of memory that could not be corrected",
    62: "a halt of the GPU's microcontroller",
    63: "bad memory was put out of use; it takes effect at the GPU's next reset",
    64: "bad memory could not be put out of use",
    74: "an error of NVLink",
    79: "the GPU has fallen off the bus",
    92: "many errors of memory that were corrected",
    94: "an error of memory, contained to the program that met it",
    95: "an error of memory that was not contained: all programs of the GPU are in doubt",
    119: "the GPU's system processor (GSP) did not answer in time",
    120: "an error of the GPU's system processor (GSP)",
    140: "an error of memory that could not be corrected",
    154: "what the GPU needs to recover has changed: a reset, or a restart of its node",
}
"""The more common ones of NVIDIA's catalogue (docs.nvidia.com/deploy/xid-errors), in our words."""

_NO_INSTANCE = 2**32 - 1
_MOST_EVENTS = 1000
"""Taken at one reading at most, should the driver report faster than we read."""


def link_count(handle: Handle) -> int | None:
    """Return how many NVLinks a GPU has, or None if the driver does not say."""
    try:
        return fields(handle, pynvml.NVML_FI_DEV_NVLINK_LINK_COUNT)[0]
    except pynvml.NVMLError:
        return None


def error_signals(links: int | None) -> list[Signal]:
    """Return what reads the counters of ECC and NVLink of one GPU."""
    signals = [Signal(tuple(_ECC), _ecc, every=HARDLY_EVER)]
    if links != 0:
        nvlink = _NvlinkErrors(links or 0)
        ways = (nvlink.of_all, nvlink.of_each) if links else (nvlink.of_all,)
        signals.append(Signal(("gpu_nvlink_errors",), *ways, every=HARDLY_EVER))
    return signals


def _ecc(handle: Handle, out: Out) -> None:
    # Those since the driver was loaded; the aggregate ones are of the GPU's whole life.
    for name, kind in _ECC.items():
        out[name] = pynvml.nvmlDeviceGetTotalEccErrors(handle, kind, pynvml.NVML_VOLATILE_ECC)


class _NvlinkErrors:
    """Errors of all NVLinks of one GPU: from the driver's totals, or link by link (Hopper)."""

    def __init__(self, links: int) -> None:
        self._each = [(field, link) for link in range(links) for field in _OF_ONE_LINK]

    def of_all(self, handle: Handle, out: Out) -> None:
        out["gpu_nvlink_errors"] = sum(fields(handle, *_OF_ALL_LINKS, besides=_NOT_COUNTED))

    def of_each(self, handle: Handle, out: Out) -> None:
        out["gpu_nvlink_errors"] = sum(fields(handle, *self._each, besides=_NOT_COUNTED))


class Xids:
    """The Xid errors of some GPUs from now on: how many, and which.

    Args:
        handles: the job's devices.
        instances: the MIG instances among them, by device id.
    """

    def __init__(self, handles: Mapping[Device, Handle], instances: Mapping[str, Instance]) -> None:
        self._own: list[tuple[int | None, Device, Instance | None]] = []
        """With the address of the GPU's handle, as an event names it."""
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
        """Return the errors so far, by device id; never waits."""
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
        meaning = f" ({_MEANINGS[code]})" if code in _MEANINGS else ""
        for gpu, device, instance in self._own:
            # Of an instance that is not the job's it is none of the job's business.
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
        """Return what was reported since the last call, as sentences."""
        alerts, self._alerts = self._alerts, []
        return alerts

    def close(self) -> None:
        """Let go of the events; safe to call twice."""
        if self._set is not None:
            with contextlib.suppress(pynvml.NVMLError):
                pynvml.nvmlEventSetFree(self._set)
            self._set = None


def _address(handle: Handle) -> int | None:
    """Return what tells handles apart: the binding makes a new object for the same GPU."""
    return cast(handle, c_void_p).value
