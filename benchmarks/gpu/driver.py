"""Call each function of the driver's library; the stage `signals` starts this program.

python driver.py ask [USER]         what each call answers, as JSON: a list of [call, value, error]
python driver.py signals [USER]     each signal as Teho reads it, as JSON
python driver.py periods SECONDS    how often counters and means change, as JSON: name and figures

This is a separate process because a driver may hang. If USER is given, root becomes this user after
all imports. So the user needs no permission for the files of this program, only for the driver.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pynvml as nv

from teho.devices.nvidia.source import NvidiaSource
from teho.model.missing import Missing

_METRIC = re.compile(r"NVML_GPM_METRIC_(?!MAX)(\w+)")
_OF_A_PART = re.compile(r"_L\d+_|_\d+_|NVLINK_L|GPC|_C2C_LINK")
"""Metrics of one link, decoder or cluster. Only sums over them are measured."""
_APART_S = 0.15
"""GPM compares two samples. The time between them must be more than 0.1 s."""
_LEAST_CHANGES = 5


def main(what: str, *words: str) -> None:
    if what != "periods" and words:
        os.setgroups([])
        os.setgid(int(words[0]))
        os.setuid(int(words[0]))
    if what == "signals":
        print(json.dumps(_signals()))
        return
    nv.nvmlInit()
    handle = nv.nvmlDeviceGetHandleByIndex(0)
    if what == "ask":
        print(json.dumps(list(_answers(handle))))
    else:
        print(json.dumps(_periods(handle, float(words[0]))))


def _signals() -> dict[str, Any]:
    """Return the readings of the first GPU. A missing reading is a list with the reason."""
    source = NvidiaSource(dict(os.environ))
    source.read(frozenset())
    time.sleep(_APART_S)
    readings = source.read(frozenset(), ends=True)
    source.close()
    first = readings[source.devices[0].id]
    return {
        name: [f"{value.reason.value}: {value.detail}"] if isinstance(value, Missing) else value
        for name, value in first.items()
    }


def _answers(handle: Any) -> Iterator[tuple[str, Any, str]]:
    calls: dict[str, Callable[[], Any]] = {
        "driver": nv.nvmlSystemGetDriverVersion,
        "MIG mode": lambda: nv.nvmlDeviceGetMigMode(handle)[0],
        "utilisation, GPU [%]": lambda: nv.nvmlDeviceGetUtilizationRates(handle).gpu,
        "memory used [bytes]": lambda: nv.nvmlDeviceGetMemoryInfo(handle).used,
        "energy counter [mJ]": lambda: nv.nvmlDeviceGetTotalEnergyConsumption(handle),
        "power [mW]": lambda: nv.nvmlDeviceGetPowerUsage(handle),
        "power, instant [mW]": lambda: _field(handle, nv.NVML_FI_DEV_POWER_INSTANT),
        "power, average [mW]": lambda: _field(handle, nv.NVML_FI_DEV_POWER_AVERAGE),
        "clocks' event reasons": lambda: hex(nv.nvmlDeviceGetCurrentClocksEventReasons(handle)),
        "SM clock [MHz]": lambda: nv.nvmlDeviceGetClockInfo(handle, nv.NVML_CLOCK_SM),
        "temperature [°C]": lambda: nv.nvmlDeviceGetTemperature(handle, nv.NVML_TEMPERATURE_GPU),
        "PCIe to the GPU [KB/s]": lambda: nv.nvmlDeviceGetPcieThroughput(
            handle, nv.NVML_PCIE_UTIL_RX_BYTES
        ),
        "PCIe from the GPU [KB/s]": lambda: nv.nvmlDeviceGetPcieThroughput(
            handle, nv.NVML_PCIE_UTIL_TX_BYTES
        ),
        "NVLink 0, state": lambda: nv.nvmlDeviceGetNvLinkState(handle, 0),
        "number of processes": lambda: len(nv.nvmlDeviceGetComputeRunningProcesses(handle)),
        "processes with a known use": lambda: len(nv.nvmlDeviceGetProcessUtilization(handle, 0)),
        "accounting mode": lambda: nv.nvmlDeviceGetAccountingMode(handle),
        "corrected memory errors": lambda: nv.nvmlDeviceGetTotalEccErrors(
            handle, nv.NVML_MEMORY_ERROR_TYPE_CORRECTED, nv.NVML_VOLATILE_ECC
        ),
        "GPM is supported": lambda: nv.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice,
    }
    for name, call in calls.items():
        try:
            yield name, call(), ""
        except nv.NVMLError as error:
            yield name, None, str(error)
    yield from _gpm_answers(handle)


def _gpm_answers(handle: Any) -> Iterator[tuple[str, Any, str]]:
    try:
        older, newer = nv.nvmlGpmSampleAlloc(), nv.nvmlGpmSampleAlloc()
        nv.nvmlGpmSampleGet(handle, older)
        time.sleep(_APART_S)
        nv.nvmlGpmSampleGet(handle, newer)
    except nv.NVMLError as error:
        yield "GPM, a sample", None, str(error)
        return
    names = gpm_metrics()
    for number, (value, error) in _gpm(list(names), older, newer).items():
        yield f"GPM {number}, {names[number]}", value, error
    for sample in (older, newer):
        nv.nvmlGpmSampleFree(sample)


def gpm_metrics() -> dict[int, str]:
    """Return GPM's metrics by number, without the metrics of single links and decoders."""
    found = {}
    for name, number in vars(nv).items():
        match = _METRIC.fullmatch(name)
        if match and not _OF_A_PART.search(name):
            found[number] = match[1].lower().replace("_", " ")
    return dict(sorted(found.items()))


def _gpm(numbers: list[int], older: Any, newer: Any) -> dict[int, tuple[float | None, str]]:
    """Return the value and the error of some metrics between two samples."""
    request = nv.c_nvmlGpmMetricsGet_t()
    request.version = nv.NVML_GPM_METRICS_GET_VERSION
    request.numMetrics, request.sample1, request.sample2 = len(numbers), older, newer
    for slot, number in zip(request.metrics, numbers, strict=False):
        slot.metricId = number
    try:
        nv.nvmlGpmMetricsGet(request)
    except nv.NVMLError as error:
        return dict.fromkeys(numbers, (None, str(error)))
    found: dict[int, tuple[float | None, str]] = {}
    for slot, number in zip(request.metrics, numbers, strict=False):
        if slot.nvmlReturn != nv.NVML_SUCCESS:
            found[number] = (None, str(nv.NVMLError(slot.nvmlReturn)))
        elif slot.value != slot.value:
            found[number] = (None, "not a number")
        else:
            found[number] = (slot.value, "")
    return found


def _field(handle: Any, number: int) -> int:
    (answer,) = nv.nvmlDeviceGetFieldValues(handle, [number])
    if answer.nvmlReturn != nv.NVML_SUCCESS:
        raise nv.NVMLError(answer.nvmlReturn)
    return int(answer.value.uiVal)


def _periods(handle: Any, seconds: float) -> dict[str, Any]:
    """Return for each signal the time between its changes, or why this time is not known."""
    readers: dict[str, Callable[[], Any]] = {
        "energy counter": lambda: nv.nvmlDeviceGetTotalEnergyConsumption(handle),
        "power, instant": lambda: _field(handle, nv.NVML_FI_DEV_POWER_INSTANT),
        "power, average": lambda: _field(handle, nv.NVML_FI_DEV_POWER_AVERAGE),
        "utilisation, GPU": lambda: nv.nvmlDeviceGetUtilizationRates(handle).gpu,
    }
    found = {name: _period(read, seconds) for name, read in readers.items()}
    try:
        base, now = nv.nvmlGpmSampleAlloc(), nv.nvmlGpmSampleAlloc()
        nv.nvmlGpmSampleGet(handle, base)
    except nv.NVMLError as error:
        return found | {"GPM": {"why": str(error)}}
    time.sleep(_APART_S)
    names = gpm_metrics()
    numbers = [
        number
        for number, (value, _) in _gpm(list(names), base, _sampled(handle, now)).items()
        if value is not None
    ]
    changes: dict[int, list[float]] = {number: [] for number in numbers}
    last: dict[int, float | None] = {}
    costs_s = []
    until_s = time.perf_counter() + seconds
    # The mean since `base` changes only if the driver has counted further.
    while (at_s := time.perf_counter()) < until_s:
        values = _gpm(numbers, base, _sampled(handle, now))
        costs_s.append(time.perf_counter() - at_s)
        for number, (value, _) in values.items():
            if number in last and value != last[number]:
                changes[number].append(at_s)
            last[number] = value
    for number in numbers:
        found[f"GPM {number}, {names[number]}"] = _told(changes[number], costs_s)
    return found


def _sampled(handle: Any, sample: Any) -> Any:
    nv.nvmlGpmSampleGet(handle, sample)
    return sample


def _period(read: Callable[[], Any], seconds: float) -> dict[str, Any]:
    changes, costs_s = [], []
    try:
        last, until_s = read(), time.perf_counter() + seconds
        while (at_s := time.perf_counter()) < until_s:
            value = read()
            costs_s.append(time.perf_counter() - at_s)
            if value != last:
                changes.append(at_s)
                last = value
    except nv.NVMLError as error:
        return {"why": str(error)}
    return _told(changes, costs_s)


def _told(changes: list[float], costs_s: list[float]) -> dict[str, Any]:
    """Return the median time between changes, its quartiles, and the time for one reading."""
    read_ms = 1000 * statistics.median(costs_s)
    if len(changes) < _LEAST_CHANGES:
        return {"why": f"its value changed only {len(changes)} times", "read_ms": read_ms}
    apart = [1000 * (new - old) for old, new in pairwise(changes)]
    low, median, high = statistics.quantiles(apart, n=4)
    return {
        "median_ms": median, "low_ms": low, "high_ms": high,
        "changes": len(changes), "read_ms": read_ms,
    }  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
