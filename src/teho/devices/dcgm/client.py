"""Activity of a GPU's multiprocessors and pipes from DCGM, if the driver does not report it.

Before Hopper only NVIDIA's DCGM has these figures. Its host engine, which the administrator starts,
publishes them on the page of a dcgm-exporter, or through `dcgmi`. A thread or child process reads
them. If it hangs, ends or has old figures, these figures are missing, but no sample is late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from teho.devices.dcgm.fields import Entity
from teho.devices.dcgm.monitor import DcgmMonitor
from teho.devices.dcgm.page import DcgmPage
from teho.errors import DeviceError
from teho.model.device import Device, Reading

__all__ = ["Dcgm"]


class Dcgm:
    """DCGM's profiling figures of some NVIDIA GPUs, from the first source that works.

    Args:
        devices: the GPUs and MIG instances.
        environment: the recorder's, with `DCGM_EXPORTER_URL` and `PATH`.
        gpu_instances: NVML's number of the GPU instance of each MIG instance, by device id. Other
            instances have no figures.

    Raises:
        DeviceError: no source works; the text has the reason for each.
    """

    notes: tuple[str, ...]

    def __init__(
        self,
        devices: Sequence[Device],
        environment: Mapping[str, str],
        gpu_instances: Mapping[str, int],
    ) -> None:
        self._entities: dict[str, Entity] = {}
        for device in devices:
            if device.parent_id is None:
                self._entities[device.id] = Entity(device.id)
            elif device.id in gpu_instances:
                self._entities[device.id] = Entity(device.parent_id, gpu_instances[device.id])
        wanted = frozenset(self._entities.values())
        reasons = []
        for way in (DcgmPage, DcgmMonitor):
            try:
                self._way: DcgmPage | DcgmMonitor = way(wanted, environment)
            except DeviceError as error:
                reasons.append(error.found)
            else:
                self.notes = self._way.notes
                return
        raise DeviceError(
            "; ".join(reasons),
            next_step="ask the administrator for a DCGM host engine or a dcgm-exporter on this "
            "node",
        )

    def read(self) -> dict[str, dict[str, Reading]]:
        """Return the newest figures by device id, without waiting.

        GPUs that DCGM does not know, and figures that it does not have yet, are left out.
        """
        known = self._way.read()
        return {id_: known[entity] for id_, entity in self._entities.items() if entity in known}

    def close(self) -> None:
        """Close the source; can be called twice."""
        self._way.close()
