"""This section shows how long a sample of eight H100 GPUs takes, and the time until the first one.

*One sample* has every metric of eight stub GPUs. The metrics of GPM (NVIDIA's activity counters in
the driver) are included. The benchmark reads these metrics in the same way as the recorder, and
measures the CPU time of the process. *Plain binding* means that the benchmark calls the same driver
functions directly, through the Python package nvidia-ml-py. The benchmark makes these calls one
after the other, and does not use the answers of the driver. In the row about the energy, one call
of Teho reads the energy of all GPUs together. The benchmark compares this call with eight calls of
nvidia-ml-py, one for each GPU. The *wall time to the first sample* is the time from the start of
the program under `teho run` to the first sample of the recorder.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from common import SCRIPTS, Figures, Row, measure_process, say, stub_environment

_READINGS = 300
_STARTS = 21


def measure(*, quick: bool) -> list[Row]:
    count = 20 if quick else _READINGS
    with stub_environment() as env:
        say(f"{count} readings")
        ended = measure_process([sys.executable, __file__, str(count)], env)
        found = {name: Figures(tuple(v)) for name, v in json.loads(ended.output).items()}
        starts = 2 if quick else _STARTS
        say(f"{starts} starts")
        began = Figures.of(*(first_sample_ms(env) for _ in range(starts)))
    return [
        Row(
            what="CPU time of one sample of all metrics of 8 GPUs",
            unit="ms",
            ours=found["sample"],
            peer="plain binding",
            theirs=found["plain sample"],
            budget=5,
        ),
        Row(
            what="wall time to read the energy of 8 GPUs once",
            unit="µs",
            ours=found["energy"],
            peer="plain binding",
            theirs=found["plain energy"],
            budget=50,
        ),
        Row(what="wall time to the first sample", unit="ms", ours=began, budget=300),
    ]


def first_sample_ms(env: Mapping[str, str]) -> float:
    """Return the time from a program's start under `teho run` to the recorder's first readings."""
    from teho.config.settings import Settings
    from teho.show.loaded import LoadedRun

    with tempfile.TemporaryDirectory() as home:
        own = {**env, "TEHO_HOME": home}
        teho_run = [SCRIPTS / "teho", "run", "-q", "--every", "100ms"]
        measure_process([*teho_run, "--", "sleep", "1"], own)
        (directory,) = Path(home, "runs").glob("[!.]*")
        (node,) = LoadedRun(directory, Settings()).summary.nodes
    assert node.first_s is not None
    return 1000 * node.first_s


# The measured program: `devices.py COUNT`, with stub GPUs.


def _main(count: int) -> None:
    from teho.devices.nvidia.source import NvidiaSource

    source = NvidiaSource(dict(os.environ))
    pids = frozenset({os.getpid()})
    found = {
        "sample": _cpu_ms(lambda: source.read(pids), count, apart_s=0.11),
        "plain sample": _cpu_ms(_plain_sample(), count, apart_s=0.11),
    }
    source.close()
    import pynvml

    import teho

    with teho.energy() as energy:
        found["energy"] = _wall_us(energy.read, count)
    pynvml.nvmlInit()
    handles = [pynvml.nvmlDeviceGetHandleByIndex(gpu) for gpu in range(8)]
    found["plain energy"] = _wall_us(
        lambda: [pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) for handle in handles], count
    )
    print(json.dumps(found))


def _cpu_ms(read: Callable[[], object], count: int, apart_s: float) -> list[float]:
    """Return the CPU time of each reading. GPM needs some time between two readings."""
    times_ms = []
    for _ in range(count):
        began_s = time.process_time()
        read()
        times_ms.append(1000 * (time.process_time() - began_s))
        time.sleep(apart_s)
    return times_ms


def _wall_us(read: Callable[[], object], count: int) -> list[float]:
    times_us = []
    for _ in range(count):
        began_s = time.perf_counter()
        read()
        times_us.append(1e6 * (time.perf_counter() - began_s))
    return times_us


def _plain_sample() -> Callable[[], object]:
    """Return a function that makes all driver calls of one sample of Teho."""
    import pynvml

    pynvml.nvmlInit()
    handles = [pynvml.nvmlDeviceGetHandleByIndex(gpu) for gpu in range(8)]
    buffers = [[pynvml.nvmlGpmSampleAlloc() for _ in range(2)] for _ in handles]
    for handle, (older, _) in zip(handles, buffers, strict=True):
        pynvml.nvmlGpmSampleGet(handle, older)
    gpm = (2, 3, 4, 5, 10, 11, 12, 13, 20, 21, 60, 61)
    errors = (pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED)

    def sample() -> None:
        for handle, pair in zip(handles, buffers, strict=True):
            pynvml.nvmlDeviceGetUtilizationRates(handle)
            pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2)
            pynvml.nvmlDeviceGetFieldValues(handle, [pynvml.NVML_FI_DEV_POWER_INSTANT])
            pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)
            pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)
            pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM)
            pynvml.nvmlDeviceGetTemperatureV(handle, pynvml.NVML_TEMPERATURE_GPU)
            pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
            pynvml.nvmlDeviceGetComputeRunningProcesses_v3(handle)
            with contextlib.suppress(pynvml.NVMLError_NotFound):
                pynvml.nvmlDeviceGetProcessUtilization(handle, 0)
            for kind in errors:
                pynvml.nvmlDeviceGetTotalEccErrors(handle, kind, pynvml.NVML_VOLATILE_ECC)
            pynvml.nvmlGpmSampleGet(handle, pair[1])
            request = pynvml.c_nvmlGpmMetricsGet_t()
            request.version = pynvml.NVML_GPM_METRICS_GET_VERSION
            request.numMetrics, request.sample1, request.sample2 = len(gpm), *pair
            for slot, number in zip(request.metrics, gpm, strict=False):
                slot.metricId = number
            pynvml.nvmlGpmMetricsGet(request)
            pair.reverse()

    return sample


if __name__ == "__main__":
    _main(int(sys.argv[1]))
