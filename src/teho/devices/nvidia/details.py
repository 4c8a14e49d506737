"""What only viewers need about a GPU: its P-state, and how the program's processes use it.

These calls are made only while a viewer watches, so a run without a viewer has no cost.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any, Generic, TypeVar

import pynvml

from teho.devices.nvidia.devices import Handle, missing_for
from teho.devices.nvidia.processes import Pids
from teho.devices.nvidia.signals import pace
from teho.model.device import GpuDetails, GpuProcess, GpuState, ProcessType
from teho.model.missing import Missing, Reason

__all__ = ["Details"]

T = TypeVar("T")

_P_STATE_EVERY = 2
"""Calls between two readings of the P-state: it is at most 2 s old with one sample per second."""
_LISTS_EVERY = 5
"""Calls between two readings of the lists of processes: their types hardly ever change."""
_GAP_S = 15.0
"""After a longer time without a call, a viewer has just begun to watch: everything is read."""
_UNKNOWN = Missing(Reason.FAILED, "the driver does not know the P-state")


class Details:
    """Reads the details of one GPU or MIG instance.

    Args:
        device: its id.
        handle: its handle.
        gpu: handle of the whole GPU: only this has a P-state.
        pids: the program's processes, and those of them that compute on this device.
        position: the place among the job's GPUs. The lists are read for one GPU at a time.
    """

    def __init__(self, device: str, handle: Handle, gpu: Handle, pids: Pids, position: int) -> None:
        self._device = device
        self._pids = pids
        self._position = position
        self._turn = 0
        self._read_s = float("-inf")
        self._gpu = gpu
        self._p_state = _Answer(gpu, _ask_p_state)
        self._p_state_every = 0
        """0: the time that the driver needs is not measured yet."""
        self._lists: dict[ProcessType, _Answer[list[Any]]] = {
            "graphics": _Answer(
                handle,
                pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3,
                pynvml.nvmlDeviceGetGraphicsRunningProcesses_v2,
            ),
            "MPS": _Answer(
                handle,
                pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3,
                pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v2,
            ),
        }

    def read(self) -> GpuDetails:
        """Return the details; see `DeviceSource.details`."""
        now_s = monotonic()
        is_new = now_s - self._read_s > _GAP_S
        self._read_s = now_s
        if not self._p_state_every:
            self._p_state_every = max(_P_STATE_EVERY, pace(lambda: _ask_p_state(self._gpu)))
        if is_new or self._is_due(self._p_state_every):
            self._p_state.renew()
        if is_new or self._is_due(_LISTS_EVERY):
            for listed in self._lists.values():
                listed.renew()
        self._turn += 1
        return self._details()

    def _is_due(self, every: int) -> bool:
        return (self._turn - self._position) % every == 0

    def _details(self) -> GpuDetails:
        using = {
            pid: GpuProcess(size, ("compute",))
            for pid, size in self._pids.memory.get(self._device, {}).items()
        }
        unlisted: dict[ProcessType, Missing] = {}
        for kind, listed in self._lists.items():
            if isinstance(listed.latest, Missing):
                unlisted[kind] = listed.latest
                continue
            for process in self._pids.own_of(listed.latest) or ():
                known = using.get(process.pid, GpuProcess(process.usedGpuMemory))
                using[process.pid] = known._replace(types=tuple(sorted({*known.types, kind})))
        p_state = self._p_state.latest
        return GpuDetails(GpuState(p_state=p_state, unlisted=unlisted), using)


class _Answer(Generic[T]):
    """The newest answer of a call, or why it is missing.

    Args:
        handle: the device.
        ways: the call, and alternative calls of older drivers.
    """

    def __init__(self, handle: Handle, *ways: Callable[[Handle], T | Missing]) -> None:
        self._handle = handle
        self._ways = list(ways)
        self.latest: T | Missing = Missing(Reason.UNRECORDED, "it was not read yet")

    def renew(self) -> None:
        """Make the call again, unless it will never work."""
        while self._ways:
            try:
                self.latest = self._ways[0](self._handle)
            except pynvml.NVMLError as error:
                self.latest = missing_for(error.value)
                if self.latest.reason is not Reason.UNSUPPORTED:
                    return
                del self._ways[0]  # it will never work, and each attempt costs time
            else:
                return


def _ask_p_state(gpu: Handle) -> int | Missing:
    number: int = pynvml.nvmlDeviceGetPerformanceState(gpu)
    return _UNKNOWN if number == pynvml.NVML_PSTATE_UNKNOWN else number
