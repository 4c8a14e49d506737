"""NVIDIA GPUs and MIG instances, through the driver's own library (NVML).

Every figure comes from the unmodified `pynvml` of nvidia-ml-py. What a GPU, its driver
or its administrator does not give is a `Missing` with the reason; once the list of
devices stands, nothing here raises.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pynvml

from teho.devices.nvidia.devices import Found, Handle, Instance, find_gpus, missing_for, no_driver
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
from teho.devices.nvidia.visible import visible_cuda
from teho.errors import DeviceError
from teho.model.device import Device, Readings
from teho.model.metric import metrics_of
from teho.model.missing import Missing, Reason

if TYPE_CHECKING:
    from teho.devices.dcgm.client import Dcgm

__all__ = ["NvidiaSource"]

_METRICS = tuple(metric.name for metric in metrics_of("gpu"))

_OF_WHOLE_GPU = Missing(
    Reason.UNSUPPORTED, "measured only for the whole GPU, which other MIG instances share"
)
_NOT_OF_INSTANCES = Missing(
    Reason.UNSUPPORTED, "the driver does not report it for processes on MIG instances"
)
_NOT_IN_MIG_MODE = Missing(Reason.UNSUPPORTED, "the driver does not report it in MIG mode")
_NO_NVLINK = Missing(Reason.ABSENT, "this GPU has no NVLink")
_NOT_IN_DCGM = Missing(Reason.FAILED, "DCGM has reported nothing about this GPU so far")


class _Gpu:
    """One GPU or MIG instance, and what it is known not to answer.

    Attributes:
        no_gpm: why the driver does not report how much of it is in use; None if it does.
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
        self._signals = [*plain_signals(), pids.signal()]
        whole = instance.gpu if instance else handle
        links = link_count(whole)
        self.no_gpm = self._open_gpm(whole, instance, has_nvlink=links != 0)
        if instance:
            self._know_instance()
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

    def _know_instance(self) -> None:
        # Where a driver answers these for an instance, it means the whole GPU, and
        # seven instances would count its energy seven times.
        errors = ("gpu_ecc_corrected", "gpu_ecc_uncorrected", "gpu_nvlink_errors")
        shared = ("gpu_power_w", "gpu_energy_j", *PCIE_METRICS, *NVLINK_METRICS, *errors)
        self._known |= dict.fromkeys(shared, _OF_WHOLE_GPU)
        self._known[JOB_BUSY] = _NOT_OF_INSTANCES
        self._known |= dict.fromkeys(BUSY_METRICS, _NOT_IN_MIG_MODE)
        self._signals = [it for it in self._signals if it.metrics != BUSY_METRICS]

    def _of_whole_gpu(self, pids: Pids, links: int | None) -> list[Signal]:
        signals = power_signals()
        # GPM has PCIe traffic as well, in the call that is made anyway.
        if self._gpm is None:
            signals.append(Traffic(self._handle).signal)
        if links == 0:
            self._known |= dict.fromkeys((*NVLINK_METRICS, "gpu_nvlink_errors"), _NO_NVLINK)
        return [*signals, JobBusy(self._handle, pids).signal, *error_signals(links)]

    @property
    def _activity(self) -> tuple[str, ...]:
        """What DCGM may tell where there is no GPM."""
        return (*ACTIVITY_METRICS, *NVLINK_METRICS) if self.no_gpm else ()

    def know_no_dcgm(self, why: str) -> None:
        """Give up the figures that neither the driver nor DCGM tells."""
        if self.no_gpm:
            detail = f"{self.no_gpm.detail}, and DCGM is not at hand: {why}"
            self._known |= dict.fromkeys(self._from_dcgm, Missing(self.no_gpm.reason, detail))

    def add_dcgm(self, figures: Out | None, out: Out) -> None:
        """Put what DCGM tells of this GPU into its readings."""
        if figures is None:
            out.update(dict.fromkeys(self._from_dcgm, _NOT_IN_DCGM))
        else:
            out.update({name: figures[name] for name in self._from_dcgm if name in figures})

    @property
    def is_lost(self) -> bool:
        """Whether it has fallen off its bus, which is for good."""
        return bool(self._lost)

    def read(self, *, ends: bool) -> Out:
        """Read every metric that is due; see `Source.read`."""
        if self._lost:
            return dict(self._lost)
        out = dict(self._known)
        try:
            for signal in self._signals:
                if signal.is_rare and not signal.is_due(self._turn, self._position, ends=ends):
                    out.update(signal.held)
                else:
                    signal.read(self._handle, out)
        except pynvml.NVMLError as error:
            self._lost = dict.fromkeys(_METRICS, missing_for(error.value))
            return dict(self._lost)
        self._turn += 1
        return out

    def close(self) -> None:
        """Give back what the driver keeps for it."""
        if self._gpm:
            self._gpm.close()


class NvidiaSource:
    """All NVIDIA GPUs of the job, as a `teho.model.device.Source`.

    What is in use of a GPU comes from the driver from Hopper on, else from DCGM where there is
    one. PCIe traffic is the mean since it was last read where the driver counts bytes, else a
    sample of 20 ms. What takes long to read comes with every tenth read only, what changes
    slowly with every fifth, and errors of memory and links with every thirtieth.

    Args:
        environment: the program's environment, for `CUDA_VISIBLE_DEVICES` and its like.
        root: a folder that holds `sys` and `proc`.

    Raises:
        DeviceError: no NVIDIA driver here, none that this user may use, or no GPU that
            is the job's; the text says which.
    """

    devices: tuple[Device, ...]
    notes: tuple[str, ...]

    def __init__(self, environment: Mapping[str, str], root: Path = Path("/")) -> None:
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError as error:
            raise no_driver(error.value) from None
        self._open = True
        self._gpus: list[_Gpu] = []
        self._dcgm: Dcgm | None = None
        self._xids: Xids | None = None
        try:
            found = find_gpus(root)
            self.devices, said = visible_cuda(environment, list(found.handles), found.legacy_names)
            self.notes = (*found.notes, *said, *_cautions(self.devices))
            if not self.devices:
                raise _no_gpu(found, environment, self.notes)
        except (DeviceError, pynvml.NVMLError) as error:
            self.close()
            if isinstance(error, pynvml.NVMLError):
                raise no_driver(error.value) from None
            raise
        self._pids = Pids(root)
        handles = {device: found.handles[device] for device in self.devices}
        self._gpus = [
            _Gpu(device, handle, found.instances.get(device.id), self._pids, position)
            for position, (device, handle) in enumerate(handles.items())
        ]
        self._xids = Xids(handles, found.instances)
        self._open_dcgm(environment, found)
        self.notes = (*self.notes, *accounting_note(handles))

    def _open_dcgm(self, environment: Mapping[str, str], found: Found) -> None:
        """Turn to DCGM for the GPUs of which the driver does not report enough."""
        lacking = [gpu for gpu in self._gpus if gpu.no_gpm]
        if not lacking:
            return
        from teho.devices.dcgm.client import Dcgm

        numbers = {
            id_: instance.gpu_instance
            for id_, instance in found.instances.items()
            if instance.gpu_instance is not None
        }
        try:
            self._dcgm = Dcgm([gpu.device for gpu in lacking], environment, numbers)
        except DeviceError as error:
            for gpu in lacking:
                gpu.know_no_dcgm(error.found)
        else:
            self.notes = (*self.notes, *self._dcgm.notes)

    def read(self, pids: frozenset[int], *, ends: bool = False) -> Readings:
        """Read every metric of every GPU that is due; see `Source.read`."""
        if self._xids is None:  # closed
            return {}
        self._pids.own = pids
        readings = {gpu.device.id: gpu.read(ends=ends) for gpu in self._gpus}
        if self._dcgm:
            figures = self._dcgm.read()
            for gpu in self._gpus:
                if not gpu.is_lost:
                    gpu.add_dcgm(figures.get(gpu.device.id), readings[gpu.device.id])
        # A lost GPU's as well: the driver tells of its loss in this way.
        for id_, count in self._xids.read().items():
            readings[id_][XID_ERRORS] = count
        return readings

    def alerts(self) -> list[str]:
        """Return the errors that the driver has reported since the last call."""
        return self._xids.alerts() if self._xids else []

    def close(self) -> None:
        """Let go of the driver; safe to call twice. There is nothing to read after it."""
        if not self._open:
            return
        self._open = False
        for part in (self._dcgm, self._xids, *self._gpus):
            if part is not None:
                part.close()
        self._gpus, self._dcgm, self._xids = [], None, None
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def _no_gpu(found: Found, environment: Mapping[str, str], notes: Sequence[str]) -> DeviceError:
    why = "; ".join(notes)
    if not found.handles:
        text = "the NVIDIA driver shows no GPU to this user"
        return DeviceError(text + (f" ({why})" if why else ""), next_step="look at `nvidia-smi -L`")
    text = f"none of the {len(found.handles)} NVIDIA GPUs here is this job's"
    variable = environment.get("CUDA_VISIBLE_DEVICES")
    if variable is not None:
        text += f": CUDA_VISIBLE_DEVICES is {variable!r}"
    return DeviceError(
        text + (f" ({why})" if why else ""),
        next_step="ask the scheduler for a GPU, or mend CUDA_VISIBLE_DEVICES",
    )


def _cautions(devices: tuple[Device, ...]) -> list[str]:
    """Return what the reader of the figures has to know about some models."""
    if any(device.energy_of == "module" for device in devices):
        return ["the energy counter of a GH200 is the whole module's, its CPU included"]
    return []
