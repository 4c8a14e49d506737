"""Measure once a second with Zeus's monitor, and print the number of signals.

The documentation of Zeus measures an epoch as one window. This program begins and ends a window
each second. A window has the energy of each GPU, and the time.
"""

from __future__ import annotations

import contextlib
import sys
import time

with contextlib.redirect_stdout(sys.stderr):  # a library of Zeus prints messages
    from zeus.monitor import ZeusMonitor

    monitor = ZeusMonitor(approx_instant_energy=False)
gpus = len(monitor.gpu_indices)
print(gpus, gpus, flush=True)
while True:
    monitor.begin_window("second")
    time.sleep(1)
    monitor.end_window("second")
