"""Sample all GPUs once a second with nvitop's collector, and print the number of signals."""

from __future__ import annotations

import time

from nvitop import Device, ResourceMetricCollector

devices = Device.all()
collector = ResourceMetricCollector(devices, interval=1.0)
told = False


def on_collect(metrics: dict[str, float]) -> bool:
    global told  # noqa: PLW0603 - the callback has no other memory
    if not told:
        signals = sum(name.endswith("/last") for name in metrics)
        print(len(devices), signals, flush=True)
        told = True
    return True


collector.daemonize(on_collect, interval=1.0)
while True:
    time.sleep(3600)
