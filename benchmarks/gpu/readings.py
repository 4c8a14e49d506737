"""Measure the time for one reading with a real driver; the stage `cost` starts this program.

python readings.py COUNT    print median, minimum and maximum of each kind of reading, as JSON
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import sys
import time
from collections.abc import Callable

import pynvml

import teho
from teho.devices.nvidia.source import NvidiaSource


def main(count: int) -> None:
    source = NvidiaSource(dict(os.environ))
    pids = frozenset({os.getpid()})
    wall_ms, cpu_ms = [], []
    for _ in range(count):
        began_s, cpu_began_s = time.perf_counter(), time.process_time()
        source.read(pids)
        wall_ms.append(1000 * (time.perf_counter() - began_s))
        cpu_ms.append(1000 * (time.process_time() - cpu_began_s))
        time.sleep(0.11)  # GPM needs this time between two samples
    gpus = len(source.devices)
    source.close()
    found = {"a sample of all GPUs, wall time": wall_ms, "a sample of all GPUs, CPU time": cpu_ms}
    pynvml.nvmlInit()
    handles = [pynvml.nvmlDeviceGetHandleByIndex(number) for number in range(gpus)]
    with teho.energy() as energy:
        found["teho.energy(), one reading"] = _wall_ms(energy.read, 10 * count)
    with contextlib.suppress(pynvml.NVMLError):
        found["energy of all GPUs, with nvidia-ml-py"] = _wall_ms(
            lambda: [pynvml.nvmlDeviceGetTotalEnergyConsumption(one) for one in handles], 10 * count
        )
    print(json.dumps({name: [statistics.median(v), min(v), max(v)] for name, v in found.items()}))


def _wall_ms(read: Callable[[], object], count: int) -> list[float]:
    times_ms = []
    for _ in range(count):
        began_s = time.perf_counter()
        read()
        times_ms.append(1000 * (time.perf_counter() - began_s))
    return times_ms


if __name__ == "__main__":
    main(int(sys.argv[1]))
