"""What is recorded of a machine is what the stand-ins then answer."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import nvml_stub
import pytest
import record_devices
from nvml_stub import Scenario

from stubs.amd_tree import build_mi250x
from teho.devices.amd.source import AmdSource

PROGRAM = Path(record_devices.__file__)
REFUSED = (
    "fail nvmlDeviceGetUtilizationRates 1 NO_PERMISSION",
    "fail gpm:11 0 NOT_SUPPORTED",
    "fail nvmlDeviceGetAccountingMode 2 NOT_SUPPORTED",
)


def record_from(stub: Path, scenario: Path, folder: Path) -> Scenario:
    """Run the program where the driver is a stand-in, and return what it wrote."""
    subprocess.run(
        [sys.executable, str(PROGRAM), str(folder), "--for", "1.3", "--every", "0.3"],
        env={**os.environ, **nvml_stub.environment(stub, scenario)},
        check=True, timeout=60,
    )  # fmt: skip
    text = (folder / "nvml.txt").read_text(encoding="utf-8")
    return Scenario(tuple(text.splitlines()))


def facts(scenario: Scenario) -> list[str]:
    """Return the lines of what does not change with time."""
    return sorted(line for line in scenario.lines if not re.match(r"\d|#|end", line))


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    return Scenario.load("h200x4").plus(*REFUSED)


@pytest.fixture(scope="module")
def recorded(
    original: Scenario, nvml_library: Path, tmp_path_factory: pytest.TempPathFactory
) -> Scenario:
    folder = tmp_path_factory.mktemp("record")
    return record_from(nvml_library, original.write(folder / "original.txt"), folder)


def test_labels_and_refusals_are_those_of_the_machine(recorded: Scenario) -> None:
    lines = facts(recorded)
    assert recorded.gpus == 4
    assert "name 0 NVIDIA H200" in lines
    assert set(REFUSED) <= set(lines)
    assert len([line for line in lines if line.startswith("fail")]) == len(REFUSED)


def test_steps_are_what_the_gpus_did(original: Scenario, recorded: Scenario) -> None:
    for gpu in range(4):
        steps = recorded.steps(gpu)
        assert len(steps) >= 4
        for step, after in itertools.pairwise(steps):
            true = original.at(gpu, step.at_s)
            assert step.power_w == true.power_w
            assert step.used_mib == true.used_mib
            assert step.clock_mhz == true.clock_mhz
            assert step.busy_percent == (0 if gpu == 1 else true.busy_percent)
            mean = original.gpm_mean(gpu, 2, step.at_s, after.at_s)
            assert step.gpm[2] == pytest.approx(mean, rel=0.001)
            assert (11 in step.gpm) == (gpu != 0)


def test_a_replay_that_is_recorded_says_the_same(
    recorded: Scenario, nvml_library: Path, tmp_path: Path
) -> None:
    again = record_from(nvml_library, recorded.write(tmp_path / "recorded.txt"), tmp_path)
    assert facts(again) == facts(recorded)
    for gpu in range(4):
        assert again.steps(gpu)[0].power_w == recorded.steps(gpu)[0].power_w


def test_trees_of_sysfs_answer_as_the_machine_does(tmp_path: Path) -> None:
    tree = build_mi250x(tmp_path / "machine", busy=[90, 80, 0, 0, 0, 0, 0, 0])
    tree.gpus[0].run(10, power_w=300)
    record_devices.keep_tree(tree.root, tmp_path / "copy")
    machine, copy = (AmdSource({}, root=root) for root in (tree.root, tmp_path / "copy"))
    assert len(copy.devices) == 8
    for here, there in zip(machine.devices, copy.devices, strict=True):
        assert (here.name, here.pci_bus_id) == (there.name, there.pci_bus_id)
        # Chips are known by numbers that are not theirs.
        assert here.id != there.id
        before, after = machine.read(frozenset())[here.id], copy.read(frozenset())[there.id]
        names = ("gpu_busy_percent", "gpu_power_w", "gpu_energy_j", "gpu_memory_used_bytes")
        assert [before[name] for name in names] == [after[name] for name in names]


def test_without_a_driver_it_says_so(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path / "out"), "--for", "0.1"],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert "no NVIDIA driver" in ended.stderr
    assert (tmp_path / "out").is_dir()
