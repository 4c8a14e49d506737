"""NVIDIA's energy counters alone: only what they need is asked of the driver."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

import pynvml

from teho.devices.nvidia.devices import Handle, find_gpus, missing_for, no_driver
from teho.devices.nvidia.visible import visible_cuda
from teho.errors import DeviceError
from teho.model.device import Device, Reading
from teho.model.missing import Missing, Reason

__all__ = ["NvidiaEnergy"]

_OF_WHOLE_GPU = Missing(
    Reason.UNSUPPORTED, "energy is counted only for the whole GPU, which MIG instances share"
)


class NvidiaEnergy:
    """The counters of the job's NVIDIA GPUs.

    Args:
        environment: the program's, for `CUDA_VISIBLE_DEVICES`.
        root: a folder that holds `sys`.

    Raises:
        DeviceError: no driver here, or no GPU that is the job's.
    """

    def __init__(self, environment: Mapping[str, str], root: Path) -> None:
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            raise no_driver(error.value) from None
        self._open = True
        try:
            found = find_gpus(root)
        except pynvml.NVMLError as error:
            self.close()
            raise no_driver(error.value) from None
        self.devices: tuple[Device, ...]
        self.devices, said = visible_cuda(environment, list(found.handles), found.legacy_names)
        self.notes = (*found.notes, *said)
        if not self.devices:
            self.close()
            raise DeviceError("; ".join(["no NVIDIA GPU here is this job's", *self.notes]))
        if any(device.energy_of == "module" for device in self.devices):
            self.notes += ("the energy counter is the whole module's, its CPU included",)
        # Where a driver answers for a MIG instance, it means the whole GPU.
        self._handles = [
            None if device.parent_id else found.handles[device] for device in self.devices
        ]

    def read(self) -> list[Reading]:
        """Return the counters in J, in the order of `devices`."""
        return [_OF_WHOLE_GPU if handle is None else _counted_j(handle) for handle in self._handles]

    def close(self) -> None:
        """Let go of the driver; safe to call twice."""
        if self._open:
            self._open = False
            with contextlib.suppress(pynvml.NVMLError):
                pynvml.nvmlShutdown()


def _counted_j(handle: Handle) -> Reading:
    try:
        counted_mj: int = pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)
    except pynvml.NVMLError as error:
        return missing_for(error.value)
    if counted_mj == 2**64 - 1:  # NVML_VALUE_NOT_AVAILABLE
        return missing_for(pynvml.NVML_ERROR_NO_DATA)
    return counted_mj / 1000
