"""The program's processes on each GPU: their number, memory and share of the time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import pynvml

from teho.devices.nvidia.devices import Handle, ask, number
from teho.devices.nvidia.signals import Out, Signal, pace
from teho.devices.procfile import has_host_pids
from teho.model.device import Device
from teho.model.missing import Missing, Reason

__all__ = ["JOB_BUSY", "JobBusy", "Pids", "accounting_note"]

JOB_BUSY = "gpu_job_busy_percent"
_PROCESS_METRICS = ("gpu_job_processes", "gpu_job_memory_bytes")

_NO_PROCESS_MEMORY = Missing(Reason.UNSUPPORTED, "the driver does not report memory per process")
_OTHER_PIDS = Missing(
    Reason.FAILED,
    "inside a container the driver's process ids differ from the ids of the program's processes",
)

_LONGEST_PERIOD_S = 1.0
"""The driver samples utilisation every 1/6 to 1 s, depending on the GPU (nvmlUtilization_t)."""

_NOTHING = frozenset({pynvml.NVML_SUCCESS, pynvml.NVML_ERROR_NOT_FOUND})
"""Errors of the binding if no process has a sample."""


class Pids:
    """Comparison of NVML's process ids with the program's.

    In a container the driver may report the host's ids, or hide processes. Then a list without the
    program's ids is evidence only after another list had one of them.
    """

    def __init__(self, root: Path) -> None:
        self.comparable = has_host_pids(str(root)) is True
        self.own: frozenset[int] = frozenset()
        """The program's live processes."""
        self.memory: dict[str, dict[int, int | None]] = {}
        """GPU -> process of the program that computes on it -> its memory there, at the last
        reading; None: the driver does not report it."""

    def signal(self, device: str) -> Signal:
        """Return the signal for the program's processes on a GPU, and their memory.

        Args:
            device: id of the GPU.
        """
        # On old drivers, the binding's call without a version raises errors of another type.
        return Signal(
            _PROCESS_METRICS, partial(self._read, device), partial(self._read_old, device)
        )

    def own_of(self, processes: Iterable[Any]) -> list[Any] | None:
        """Return the program's processes; None if the ids cannot be compared."""
        own = [process for process in processes if process.pid in self.own]
        self.comparable = self.comparable or bool(own)
        return own if self.comparable else None

    def _read(self, device: str, handle: Handle, out: Out) -> None:
        self._count(device, pynvml.nvmlDeviceGetComputeRunningProcesses_v3(handle), out)

    def _read_old(self, device: str, handle: Handle, out: Out) -> None:
        self._count(device, pynvml.nvmlDeviceGetComputeRunningProcesses_v2(handle), out)

    def _count(self, device: str, processes: list[Any], out: Out) -> None:
        own = self.own_of(processes)
        memory = self.memory[device] = {}
        for process in own or ():  # a process may be listed for each of its contexts
            before, size = memory.get(process.pid, 0), process.usedGpuMemory
            memory[process.pid] = None if before is None or size is None else before + size
        if own is None:
            out.update(dict.fromkeys(_PROCESS_METRICS, _OTHER_PIDS))
            return
        used = [process.usedGpuMemory for process in own]
        out["gpu_job_processes"] = len(used)
        out["gpu_job_memory_bytes"] = _NO_PROCESS_MEMORY if None in used else sum(used)


class JobBusy:
    """Share of time in which kernels of the program's processes ran on one GPU.

    The driver keeps samples of some seconds, and only for busy processes. Without a start time, it
    would also return samples of processes that have been idle for seconds.
    """

    def __init__(self, handle: Handle, pids: Pids) -> None:
        self._pids = pids
        self._newest_us = 0
        """The driver's time of the newest sample."""
        self._covered_s: float | None = None
        """Time up to which samples were used; None before the first reading."""
        self.signal = Signal((JOB_BUSY,), self._read, every=pace(lambda: self._samples(handle)))

    def _samples(self, handle: Handle) -> list[Any]:
        try:
            samples: list[Any] = pynvml.nvmlDeviceGetProcessUtilization(handle, self._newest_us)
        except pynvml.NVMLError as error:
            if error.value in _NOTHING:
                return []
            raise
        return samples

    def _read(self, handle: Handle, out: Out) -> None:
        now_s = monotonic()
        samples = self._samples(handle)
        self._newest_us = max([sample.timeStamp for sample in samples], default=self._newest_us)
        if self._covered_s is None:
            self._covered_s = now_s
            return
        # Without a sample the GPU was idle, but only if the driver has taken samples since.
        if not samples and now_s - self._covered_s < _LONGEST_PERIOD_S:
            return
        self._covered_s = now_s
        own = self._pids.own_of(samples)
        if own is None:
            out[JOB_BUSY] = _OTHER_PIDS
        else:
            # Each process has its share of the time. With MPS the sum may exceed 100 %.
            out[JOB_BUSY] = min(100, sum(number(sample.smUtil) for sample in own))


def accounting_note(handles: Mapping[Device, Handle]) -> list[str]:
    """Return a sentence if the driver keeps accounts of ended processes on some GPUs."""
    on = [
        str(device.index)
        for device, handle in handles.items()
        if ask(pynvml.nvmlDeviceGetAccountingMode, handle) == pynvml.NVML_FEATURE_ENABLED
    ]
    if not on:
        return []
    query = "nvidia-smi --query-accounted-apps=pid,gpu_util,max_memory_usage,time --format=csv"
    gpus = ", ".join(on)
    note = f"the driver stores figures of ended processes (accounting mode) on GPU {gpus}. "
    return [f"{note}Read them with: `{query}`"]
