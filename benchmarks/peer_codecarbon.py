"""Measure once a second with codecarbon's offline tracker, and print the number of signals.

The tracker writes no files and no logs, and sends no data. Once a second, codecarbon reads the
energy and load of every GPU, the load of the CPU, and the memory in use, in bytes and in per cent.
"""

from __future__ import annotations

import contextlib
import sys
import time

with contextlib.redirect_stdout(sys.stderr):  # AMD's library prints messages
    from codecarbon import OfflineEmissionsTracker

tracker = OfflineEmissionsTracker(
    country_iso_code="FIN",
    measure_power_secs=1,
    save_to_file=False,
    log_level="critical",
    allow_multiple_runs=True,
)
tracker.start()
gpus = int(tracker.get_detected_hardware()["gpu_count"] or 0)
print(gpus, 2 * gpus + 3, flush=True)
while True:
    time.sleep(3600)
