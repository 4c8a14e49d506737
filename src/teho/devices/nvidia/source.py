"""NVIDIA GPUs and MIG instances, read through the driver's library (NVML).

Every figure comes from the unmodified `pynvml` of nvidia-ml-py. If a GPU, its driver or its
administrator does not provide a figure, the reading is a `Missing` with the reason. After the
constructor, no method raises.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pynvml

from teho.devices.nvidia.details import Details
from teho.devices.nvidia.devices import Handle, Instance, missing_for
from teho.devices.nvidia.driver import NvidiaDriver
from teho.devices.nvidia.errors import XID_ERRORS, Xids, error_signals, link_count
from teho.devices.nvidia.gpm import ACTIVITY_METRICS, NVLINK_METRICS, Gpm, why_no_gpm
from teho.devices.nvidia.processes import JOB_BUSY, JobBusy, Pids, accounting_note
from teho.devices.nvidia.signals import (
    BUSY_METRICS,
    PCIE_METRICS,
    Out,
    Signal,
    Traffic,
    plain_signals,
    power_signals,
)
from teho.errors import DeviceError
from teho.model.device import Device, GpuDetails, GpuState, Readings
from teho.model.metric import metrics_of
from teho.model.missing import Missing, Reason

if TYPE_CHECKING:
    from teho.devices.dcgm.client import Dcgm

__all__ = ["NvidiaSource"]

_METRICS = tuple(metric.name for metric in metrics_of("gpu"))

_OF_WHOLE_GPU = Missing(
    Reason.UNSUPPORTED,
    "this metric is measured only for the whole GPU, which other MIG instances share",
)
_NOT_OF_INSTANCES = Missing(
    Reason.UNSUPPORTED, "the driver does not report this metric for processes on MIG instances"
)
_NOT_IN_MIG_MODE = Missing(Reason.UNSUPPORTED, "the driver does not report this metric in MIG mode")
_NO_NVLINK = Missing(Reason.ABSENT, "this GPU has no NVLink")
_NOT_IN_DCGM: Out = dict.fromkeys(
    _METRICS, Missing(Reason.FAILED, "DCGM has reported no values of this GPU so far")
)


class _Gpu:
    """One GPU or MIG instance, and the metrics that it does not offer.

    Attributes:
        no_gpm: why the driver does not report the activity of its units; None if it does.
    """

    def __init__(
        self, device: Device, handle: Handle, instance: Instance | None, pids: Pids, position: int
    ) -> None:
        self.device = device
        self._handle = handle
        self._lost: Out = {}
        self._known: Out = {}
        self._turn = 0
        self._position = position
        self._gpm: Gpm | None = None
        self._signals = [*plain_signals(), pids.signal(device.id)]
        whole = instance.gpu if instance else handle
        self._details = Details(device.id, handle, whole, pids, position)
        links = link_count(whole)
        self.no_gpm = self._open_gpm(whole, instance, has_nvlink=links != 0)
        if instance:
            self._leave_out_shared()
        else:
            self._signals += self._of_whole_gpu(pids, links)
        self._from_dcgm = [name for name in self._activity if name not in self._known]

    def _open_gpm(
        self, gpu: Handle, instance: Instance | None, *, has_nvlink: bool
    ) -> Missing | None:
        if why := why_no_gpm(gpu, self.device.architecture):
            return why
        try:
            self._gpm = Gpm(gpu, instance, has_nvlink=has_nvlink)
        except pynvml.NVMLError as error:
            return missing_for(error.value)
        self._signals.append(self._gpm.signal)
        return None

    def _leave_out_shared(self) -> None:
        """Leave out the metrics of the whole GPU, which its instances would count several times."""
        errors = ("gpu_ecc_corrected", "gpu_ecc_uncorrected", "gpu_nvlink_errors")
        shared = ("gpu_power_w", "gpu_energy_j", *PCIE_METRICS, *NVLINK_METRICS, *errors)
        self._known |= dict.fromkeys(shared, _OF_WHOLE_GPU)
        self._known[JOB_BUSY] = _NOT_OF_INSTANCES
        self._known |= dict.fromkeys(BUSY_METRICS, _NOT_IN_MIG_MODE)
        self._signals = [it for it in self._signals if it.metrics != BUSY_METRICS]

    def _of_whole_gpu(self, pids: Pids, links: int | None) -> list[Signal]:
        signals = power_signals()
        # GPM also has PCIe traffic, without an additional call.
        if self._gpm is None:
            signals.append(Traffic(self._handle).signal)
        if links == 0:
            self._known |= dict.fromkeys((*NVLINK_METRICS, "gpu_nvlink_errors"), _NO_NVLINK)
        return [*signals, JobBusy(self._handle, pids).signal, *error_signals(links)]

    @property
    def _activity(self) -> tuple[str, ...]:
        """Metrics that DCGM may have if GPM does not work."""
        return (*ACTIVITY_METRICS, *NVLINK_METRICS) if self.no_gpm else ()

    def leave_out_dcgm(self, why: str) -> None:
        """Leave out the metrics that neither the driver nor DCGM reports."""
        if self.no_gpm:
            detail = f"{self.no_gpm.detail}, and DCGM is not available: {why}"
            self._known |= dict.fromkeys(self._from_dcgm, Missing(self.no_gpm.reason, detail))

    def read(self, from_dcgm: Out, *, ends: bool) -> Out:
        """Read every metric that is due; see `DeviceSource.read`.

        Args:
            from_dcgm: DCGM's figures of this GPU; empty without DCGM.
            ends: whether a run begins or ends now.
        """
        if self._lost:  # it has fallen off its bus, and does not come back
            return dict(self._lost)
        out = dict(self._known)
        try:
            for signal in self._signals:
                if signal.is_rare and not signal.is_due(self._turn, self._position, ends=ends):
                    out.update(signal.latest)
                else:
                    signal.read(self._handle, out)
        except pynvml.NVMLError as error:
            self._lost = dict.fromkeys(_METRICS, missing_for(error.value))
            return dict(self._lost)
        self._turn += 1
        out.update({name: from_dcgm[name] for name in self._from_dcgm if name in from_dcgm})
        return out

    def details(self) -> GpuDetails:
        """Return what only viewers need; a lost GPU is not asked again."""
        why = self._lost.get("gpu_busy_percent")
        if isinstance(why, Missing):
            return GpuDetails(GpuState(p_state=why), {})
        return self._details.read()

    def close(self) -> None:
        """Free the driver's buffers."""
        if self._gpm:
            self._gpm.close()


class NvidiaSource:
    """All NVIDIA GPUs of the job, as a `teho.model.device.DeviceSource`.

    The activity of a GPU's units comes from the driver from Hopper on, else from DCGM. PCIe traffic
    is the mean since the last reading if the driver counts bytes, else a sample of 20 ms. Expensive
    metrics are in every tenth reading, slow ones in every fifth, errors of memory and links in
    every thirtieth.

    Args:
        environment: the program's environment, with `CUDA_VISIBLE_DEVICES`.
        root: a folder that contains `sys` and `proc`.

    Raises:
        DeviceError: no driver, no permission to use it, or no GPU of the job; the text says which.
    """

    def __init__(self, environment: Mapping[str, str], root: Path = Path("/")) -> None:
        self._driver = NvidiaDriver(environment, root)
        self.devices, found = self._driver.devices, self._driver.found
        self._dcgm: Dcgm | None = None
        self._pids = Pids(root)
        handles = {device: found.handles[device] for device in self.devices}
        self._gpus = [
            _Gpu(device, handle, found.instances.get(device.id), self._pids, position)
            for position, (device, handle) in enumerate(handles.items())
        ]
        self._xids: Xids | None = Xids(handles, found.instances)
        notes = (*self._open_dcgm(environment, found.instances), *accounting_note(handles))
        self.notes = (*self._driver.notes, *notes)

    def _open_dcgm(
        self, environment: Mapping[str, str], instances: Mapping[str, Instance]
    ) -> tuple[str, ...]:
        """Open DCGM for the GPUs without GPM, and return its notes."""
        lacking = [gpu for gpu in self._gpus if gpu.no_gpm]
        if not lacking:
            return ()
        from teho.devices.dcgm.client import Dcgm

        numbers = {
            id_: instance.gpu_instance
            for id_, instance in instances.items()
            if instance.gpu_instance is not None
        }
        try:
            self._dcgm = Dcgm([gpu.device for gpu in lacking], environment, numbers)
        except DeviceError as error:
            for gpu in lacking:
                gpu.leave_out_dcgm(error.found)
            return ()
        return self._dcgm.notes

    def read(self, pids: frozenset[int], *, ends: bool = False) -> Readings:
        """Read all metrics that are due; see `DeviceSource.read`."""
        if self._xids is None:  # closed
            return {}
        self._pids.own, self._pids.memory = pids, {}
        figures = self._dcgm.read() if self._dcgm else {}
        otherwise = _NOT_IN_DCGM if self._dcgm else {}
        readings = {
            gpu.device.id: gpu.read(figures.get(gpu.device.id, otherwise), ends=ends)
            for gpu in self._gpus
        }
        # Also for a lost GPU, because its loss is an Xid error.
        for id_, count in self._xids.read().items():
            readings[id_][XID_ERRORS] = count
        return readings

    def details(self) -> dict[str, GpuDetails]:
        """Return P-states and the program's processes; see `DeviceSource.details`."""
        return {gpu.device.id: gpu.details() for gpu in self._gpus}

    def alerts(self) -> list[str]:
        """Return the errors that the driver has reported since the last call."""
        return self._xids.alerts() if self._xids else []

    def close(self) -> None:
        """Close the driver; can be called twice. Later readings are empty."""
        for part in (self._dcgm, self._xids, *self._gpus):
            if part is not None:
                part.close()
        self._gpus, self._dcgm, self._xids = [], None, None
        self._driver.close()
