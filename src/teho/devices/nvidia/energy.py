"""NVIDIA's energy counters. Opening is fast, because the driver is asked only for these."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pynvml

from teho.devices.nvidia.devices import Handle, missing_for, number
from teho.devices.nvidia.driver import NvidiaDriver
from teho.model.device import Reading
from teho.model.missing import Missing, Reason

__all__ = ["NvidiaEnergy"]

_OF_WHOLE_GPU = Missing(
    Reason.UNSUPPORTED, "energy is counted only for the whole GPU, which MIG instances share"
)


class NvidiaEnergy:
    """The energy counters of the job's NVIDIA GPUs; see `NvidiaDriver`."""

    def __init__(self, environment: Mapping[str, str], root: Path) -> None:
        self._driver = NvidiaDriver(environment, root)
        self.devices, self.notes = self._driver.devices, self._driver.notes
        # If a driver answers for a MIG instance, the figure is the whole GPU's.
        self._handles = [
            None if device.parent_id else self._driver.found.handles[device]
            for device in self.devices
        ]

    def read(self) -> list[Reading]:
        """Return the counters in J, in the order of `devices`."""
        return [_OF_WHOLE_GPU if handle is None else _counted_j(handle) for handle in self._handles]

    def close(self) -> None:
        """Close the driver; can be called twice."""
        self._driver.close()


def _counted_j(handle: Handle) -> Reading:
    try:
        return number(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)) / 1000
    except pynvml.NVMLError as error:
        return missing_for(error.value)
