"""NVIDIA's performance monitoring (GPM), from Hopper on: activity of the units of a GPU.

NVML has counters. Two samples with more than 100 ms between them give means over this time. One
call takes a sample, another returns all metrics of that GPU.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable
from ctypes import c_void_p, sizeof
from math import isfinite
from time import monotonic
from typing import Any

import pynvml

from teho.devices.nvidia.devices import Handle, Instance, missing_for
from teho.devices.nvidia.signals import Out, Signal, pace
from teho.model.missing import Missing, Reason

__all__ = ["ACTIVITY_METRICS", "NVLINK_METRICS", "Gpm", "why_no_gpm"]

_PERCENT = {
    "gpu_sm_active_percent": pynvml.NVML_GPM_METRIC_SM_UTIL,
    "gpu_sm_occupancy_percent": pynvml.NVML_GPM_METRIC_SM_OCCUPANCY,
    "gpu_tensor_percent": pynvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL,
    "gpu_fp64_percent": pynvml.NVML_GPM_METRIC_FP64_UTIL,
    "gpu_fp32_percent": pynvml.NVML_GPM_METRIC_FP32_UTIL,
    "gpu_fp16_percent": pynvml.NVML_GPM_METRIC_FP16_UTIL,
    "gpu_integer_percent": pynvml.NVML_GPM_METRIC_INTEGER_UTIL,
    "gpu_dram_percent": pynvml.NVML_GPM_METRIC_DRAM_BW_UTIL,
}
_NVLINK = {
    "gpu_nvlink_receive_bytes_per_s": pynvml.NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC,
    "gpu_nvlink_send_bytes_per_s": pynvml.NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC,
}
_PCIE = {
    "gpu_pcie_receive_bytes_per_s": pynvml.NVML_GPM_METRIC_PCIE_RX_PER_SEC,
    "gpu_pcie_send_bytes_per_s": pynvml.NVML_GPM_METRIC_PCIE_TX_PER_SEC,
}
ACTIVITY_METRICS = tuple(_PERCENT)
NVLINK_METRICS = tuple(_NVLINK)

_MIB = 2**20
"""NVML reports traffic in MiB/s (nvml.h, nvmlGpmMetricId_t)."""

_CLOSEST_S = 0.1
"""Smallest time between two samples, "due to the internal sample refresh rate"
(nvmlGpmMetricsGet)."""

_FIRST_WITH_GPM = 9.0
"""Compute capability of Hopper, the first with these functions (nvml.h)."""

_ANSWER = f"4xid{3 * sizeof(c_void_p)}x"
"""nvmlReturn and value of nvmlGpmMetric_t. The binding needs 1 us for each attribute."""
_FIRST_ANSWER = pynvml.c_nvmlGpmMetricsGet_t.metrics.offset

_NOT_A_NUMBER = Missing(Reason.FAILED, "the driver reports 'not a number' instead of a value")
_NO_GPM = Missing(
    Reason.UNSUPPORTED, "the driver reports this metric only for Hopper and newer GPUs"
)
_OLD_DRIVER = Missing(Reason.UNSUPPORTED, "the driver is too old to report this metric")


def why_no_gpm(handle: Handle, architecture: str) -> Missing | None:
    """Return why a GPU's driver reports no GPM figures; None if it does.

    Args:
        handle: the GPU; for a MIG instance, its parent.
        architecture: its compute capability; empty if it is not known.
    """
    if architecture and float(architecture) < _FIRST_WITH_GPM:
        return _NO_GPM
    try:
        supported = pynvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice
    except pynvml.NVMLError as error:
        if error.value == pynvml.NVML_ERROR_FUNCTION_NOT_FOUND:
            return _OLD_DRIVER
        if error.value == pynvml.NVML_ERROR_NOT_SUPPORTED:
            return _NO_GPM
        return missing_for(error.value)
    return None if supported else _NO_GPM


class Gpm:
    """Two samples of one GPU or MIG instance, and the metrics between them.

    A MIG instance has the metrics of its GPU instance, without PCIe and NVLink.

    Args:
        handle: the GPU, or the MIG instance's parent.
        instance: the MIG instance; None for a whole GPU.
        has_nvlink: whether to ask for NVLink's traffic.

    Attributes:
        signal: reads all metrics.

    Raises:
        pynvml.NVMLError: samples cannot be taken, for example without permission.
    """

    def __init__(self, handle: Handle, instance: Instance | None, *, has_nvlink: bool) -> None:
        self._take: Callable[[Any], object]
        if instance:
            gpu_instance = instance.gpu_instance
            self._take = lambda buffer: pynvml.nvmlGpmMigSampleGet(handle, gpu_instance, buffer)
            wanted = _PERCENT
        else:
            self._take = lambda buffer: pynvml.nvmlGpmSampleGet(handle, buffer)
            wanted = {**_PERCENT, **_PCIE, **(_NVLINK if has_nvlink else {})}
        self._buffers: list[Any] = []
        try:
            self._buffers += [pynvml.nvmlGpmSampleAlloc() for _ in range(2)]
            self._take(self._buffers[0])  # fails without permission
        except pynvml.NVMLError:
            self.close()
            raise
        self._taken_s: float | None = None
        self._latest: Out = {}
        self._scaled = [(name, 1 if name in _PERCENT else _MIB) for name in wanted]
        self._request = pynvml.c_nvmlGpmMetricsGet_t(
            version=pynvml.NVML_GPM_METRICS_GET_VERSION, numMetrics=len(wanted)
        )
        for slot, metric in zip(self._request.metrics, wanted.values(), strict=False):
            slot.metricId = metric
        self._answers = struct.Struct(_ANSWER * len(wanted))
        every = pace(lambda: self._take(self._buffers[0]))
        # A sample covers the time since the one before, so the last sample of a run is needed.
        self.signal = Signal(tuple(wanted), self._read, every=every, at_ends=True)

    def _read(self, _handle: Handle, out: Out) -> None:
        """Write the means since the last sample to `out`; if that is too recent, the means before.

        At ten readings per second, some are too close by chance.
        """
        now_s = monotonic()
        if self._taken_s is not None and now_s - self._taken_s <= _CLOSEST_S:
            out.update(self._latest)
            return
        older, newer = self._buffers
        self._take(newer)
        is_first, self._taken_s = self._taken_s is None, now_s
        self._buffers.reverse()
        if is_first:
            return
        self._request.sample1, self._request.sample2 = older, newer
        pynvml.nvmlGpmMetricsGet(self._request)
        answers = self._answers.unpack_from(self._request, _FIRST_ANSWER)
        for (name, scale), code, value in zip(
            self._scaled, answers[::2], answers[1::2], strict=True
        ):
            if code != pynvml.NVML_SUCCESS:
                self._latest[name] = missing_for(code)
            else:
                self._latest[name] = value * scale if isfinite(value) else _NOT_A_NUMBER
        out.update(self._latest)

    def close(self) -> None:
        """Free the buffers; can be called twice."""
        for buffer in self._buffers:
            with contextlib.suppress(pynvml.NVMLError):
                pynvml.nvmlGpmSampleFree(buffer)
        self._buffers = []
