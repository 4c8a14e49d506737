"""Where each task of a node sees a GPU of its own, the node's recorder knows of all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nvml_stub
import pytest

from step_tasks import only_run, step_environment
from teho.store.read import read_run


def test_the_gpus_of_all_tasks_are_recorded(tmp_path: Path) -> None:
    try:
        stub = nvml_stub.build(tmp_path / "nvml")
    except nvml_stub.NoCompilerError as reason:
        pytest.skip(str(reason))
    gpus = nvml_stub.environment(stub, nvml_stub.SCENARIOS / "h100x8_busy.txt")
    tasks = [
        subprocess.Popen(
            [sys.executable, "-m", "teho", "run", "-q", "--", "sleep", "2"],
            env={
                **step_environment(tmp_path, rank, nodes=1, per_node=3),
                **gpus,
                "CUDA_VISIBLE_DEVICES": visible,
            },
        )
        for rank, visible in enumerate(("5", "2", "7"))
    ]
    assert [task.wait(60) for task in tasks] == [0, 0, 0]
    (node,) = read_run(only_run(tmp_path)).nodes
    assert sorted(device.index for device in node.devices) == [2, 5, 7]
