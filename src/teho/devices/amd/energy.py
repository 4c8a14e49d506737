"""The energy counters of AMD's GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from teho.devices.amd.source import AmdSource
from teho.model.device import Reading

__all__ = ["AmdEnergy"]


class AmdEnergy:
    """The counters of the job's GPUs.

    Args:
        environment: where `ROCR_VISIBLE_DEVICES` and its like are looked up.
        root: a folder that holds `sys` and `proc`.

    Raises:
        DeviceError: no GPU of the job is here.
    """

    def __init__(self, environment: Mapping[str, str], root: Path) -> None:
        self._source = AmdSource(environment, root)
        self.devices, self.notes = self._source.devices, self._source.notes

    def read(self) -> list[Reading]:
        """Return the counters as they stand, in J, one for each of `devices`."""
        return self._source.read_energy()

    def close(self) -> None:
        """Close all files."""
        self._source.close()
