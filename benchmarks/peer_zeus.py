"""Measures each second with Zeus's monitor until it is ended; says how many signals.

A window is begun and ended each second, as its documentation does around an epoch: the energy of
each GPU, and the time.
"""

from __future__ import annotations

import contextlib
import sys
import time

with contextlib.redirect_stdout(sys.stderr):  # a library of it prints where it looked for AMD's
    from zeus.monitor import ZeusMonitor

    monitor = ZeusMonitor(approx_instant_energy=False)
gpus = len(monitor.gpu_indices)
print(gpus, gpus, flush=True)
while True:
    monitor.begin_window("second")
    time.sleep(1)
    monitor.end_window("second")
