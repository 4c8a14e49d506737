"""Where each task of a node sees a GPU of its own, the node's recorder knows of all."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import nvml_stub
import pytest

from step_tasks import only_run, step_environment
from teho.store.read import read_run, rows_of_node

_PATIENCE_S = 60.0


def _await_gpus(home: Path, expected: Sequence[int]) -> None:
    """Wait until the node's description names these GPUs, as users of a live run see it."""
    found: list[int | None] = []
    deadline_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline_s:
        if list(home.glob("runs/*/nodes/*.json")):
            (node,) = read_run(only_run(home)).nodes
            found = sorted(device.index for device in node.devices)
            if found == list(expected):
                return
        time.sleep(0.1)
    pytest.fail(f"GPUs {found} are known after {_PATIENCE_S:g} s, expected were {expected}")


def test_the_gpus_of_all_tasks_are_recorded_also_of_one_that_comes_late(
    nvml_library: Path, tmp_path: Path
) -> None:
    gpus = nvml_stub.environment(nvml_library, nvml_stub.SCENARIOS / "h100x8_busy.txt")

    def start(rank: int, visible: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "teho", "run", "-q", "--every", "100ms", "--", "cat"],
            env={
                **step_environment(tmp_path, rank, nodes=1, per_node=3),
                **gpus,
                "CUDA_VISIBLE_DEVICES": visible,
            },
            stdin=subprocess.PIPE,
        )

    tasks = [start(0, "5"), start(1, "2")]
    # The recorder waits a while for the third, and then begins without it.
    _await_gpus(tmp_path, [2, 5])
    tasks.append(start(2, "7"))
    _await_gpus(tmp_path, [2, 5, 7])
    for task in tasks:
        assert task.stdin is not None
        task.stdin.close()
    assert [task.wait(60) for task in tasks] == [0, 0, 0]
    directory = only_run(tmp_path)
    (node,) = read_run(directory).nodes
    rows = rows_of_node(directory, node.name, "gpu", ["gpu_power_w"], [])
    assert rows is not None
    assert set(rows.places) == {device.id for device in node.devices}
