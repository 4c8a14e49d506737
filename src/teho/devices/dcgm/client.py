"""What a GPU's multiprocessors and pipes did, from DCGM, where the driver itself does not report.

Before Hopper only NVIDIA's DCGM has these figures, from a host engine that its administrator
runs: on the page of a dcgm-exporter, or through `dcgmi`. Both are read beside the recorder:
one that hangs, dies or shows old figures costs figures, and never a sample.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from teho.devices.dcgm.fields import Entity
from teho.devices.dcgm.monitor import DcgmMonitor
from teho.devices.dcgm.page import DcgmPage
from teho.errors import DeviceError
from teho.model.device import Device, Reading

__all__ = ["Dcgm"]


class _Way(Protocol):
    """One of the two ways to DCGM's figures."""

    notes: tuple[str, ...]

    def read(self) -> dict[Entity, dict[str, Reading]]: ...
    def close(self) -> None: ...


class Dcgm:
    """DCGM's profiling figures of some NVIDIA GPUs, from whoever offers them on this node.

    Args:
        devices: the GPUs and MIG instances to ask for.
        environment: where `DCGM_EXPORTER_URL` and `PATH` are looked up.
        gpu_instances: NVML's number of the GPU instance of each MIG instance, by device id;
            an instance that is not named here has no figures.

    Raises:
        DeviceError: neither way is there; the text says why for each.
    """

    notes: tuple[str, ...]

    def __init__(
        self,
        devices: Sequence[Device],
        environment: Mapping[str, str],
        gpu_instances: Mapping[str, int] | None = None,
    ) -> None:
        instances = gpu_instances or {}
        self._entities: dict[str, Entity] = {}
        for device in devices:
            if device.parent_id is None:
                self._entities[device.id] = Entity(device.id)
            elif device.id in instances:
                self._entities[device.id] = Entity(device.parent_id, instances[device.id])
        wanted = frozenset(self._entities.values())
        self._way = _first((DcgmPage, DcgmMonitor), wanted, environment)
        self.notes = self._way.notes

    def read(self) -> dict[str, dict[str, Reading]]:
        """Return the newest figures by device id; never waits.

        A GPU that DCGM does not know is left out, and so is a figure that is still to come.
        """
        known = self._way.read()
        return {id_: known[entity] for id_, entity in self._entities.items() if entity in known}

    def close(self) -> None:
        """Let go of it; safe to call twice."""
        self._way.close()


def _first(
    ways: Sequence[Callable[[frozenset[Entity], Mapping[str, str]], _Way]],
    wanted: frozenset[Entity],
    environment: Mapping[str, str],
) -> _Way:
    reasons = []
    for way in ways:
        try:
            return way(wanted, environment)
        except DeviceError as error:
            reasons.append(error.found)
    raise DeviceError(
        "; ".join(reasons),
        next_step="ask the administrator for a DCGM host engine or a dcgm-exporter on this node",
    )
