"""Measures each second with Zeus's monitor until it is ended; says how many signals.

A window is begun and ended each second, as its documentation does around an epoch: the energy of
each GPU, and the time.
"""

from __future__ import annotations

import time

from zeus.monitor import ZeusMonitor

monitor = ZeusMonitor(approx_instant_energy=False)
gpus = len(monitor.gpu_indices)
print(gpus, gpus, flush=True)
while True:
    monitor.begin_window("second")
    time.sleep(1)
    monitor.end_window("second")
