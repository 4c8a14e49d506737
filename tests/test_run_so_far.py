"""What a report has to say of a run that has not ended yet."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import nvml_stub
import pytest
from nvml_stub import Scenario

from support import TEHO

STEADY = Scenario(("gpus 2", "processes 0 parent", "0 * 50 1000 400", "0 1 50 1000 250"))
POWER_W = 400 + 250


def energy_of(report: dict) -> float:
    """Return the energy of the GPUs, in J; 0 if it is missing."""
    values = [fact["value"] for fact in report["facts"] if fact["key"] == "gpu_energy_j"]
    return values[0] if values and isinstance(values[0], float) else 0.0


def test_a_running_run_has_its_energy_so_far(teho, tmp_path: Path, home: Path) -> None:
    try:
        library = nvml_stub.build(tmp_path)
    except nvml_stub.NoCompilerError as reason:
        pytest.skip(str(reason))
    environment = nvml_stub.environment(library, STEADY.write(tmp_path / "scenario.txt"))
    command = [*TEHO, "run", "-q", "--every", "200ms", "--", "sleep", "60"]
    began_s = time.monotonic()
    process = subprocess.Popen(command, env={**os.environ, **environment})
    try:
        energy_j, report = 0.0, {}
        while not energy_j:
            assert process.poll() is None
            time.sleep(0.1)
            if list(home.glob("runs/[!.]*/live/*")):
                report = json.loads(teho("report", "--format", "json").stdout)
                energy_j = energy_of(report)
        assert report["state"] == "running"
        assert energy_j <= POWER_W * (time.monotonic() - began_s)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
    ended = json.loads(teho("report", "--format", "json").stdout)
    assert ended["state"] == "finished"
    assert energy_of(ended) >= energy_j
