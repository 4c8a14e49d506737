"""Each kind of node, through `teho devices`, `teho energy` and the recorder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import nvml_stub
import pytest
from nvml_stub import Scenario

from stubs.amd_tree import AmdTree, build_mi250x, build_mi300a
from teho.config.settings import Settings
from teho.model.missing import Missing
from teho.model.summary import GpuSummary, Stat
from teho.show.loaded import LoadedRun

ACTIVITY = "gpu_sm_active_percent"
# What looks at the root of the file system looks at a tree instead.
ON_TREE = """\
import os, pathlib, sys
root = pathlib.Path(sys.argv.pop(1))
import teho.devices.meter, teho.devices.sources, teho.observe.survey
teho.devices.sources.open_gpus.__defaults__ = (root,)
teho.devices.meter.Meter.__init__.__defaults__ = (os.environ, root)
teho.observe.survey.read_survey.__defaults__ = (os.environ, root, 30.0)
from teho.cli import main
main()
"""


class Kind(NamedTuple):
    """A node of NVIDIA GPUs."""

    scenario: str
    gpus: int
    """GPUs and MIG instances that a program sees."""
    activity: str
    """How SM activity comes: `told`, or a part of the reason why not."""
    has_instances: bool = False
    """Some are MIG instances, whose GPU's energy is not theirs."""


KINDS = (
    Kind("v100x4", 4, "Hopper"),
    Kind("a100_mig", 3, "Hopper", has_instances=True),
    Kind("h100x8_busy", 8, "told"),
    Kind("h200x4", 4, "told"),
    Kind("gh200x2", 2, "told"),
)


def gpus_of(home: Path) -> tuple[GpuSummary, ...]:
    (directory,) = (home / "runs").glob("[!.]*")
    return LoadedRun(directory, Settings()).summary.gpus


def is_told(gpu: GpuSummary) -> bool:
    return isinstance(gpu.stats[ACTIVITY], Stat)


def answers(survey: dict, vendor: str) -> dict:
    (found,) = (one for one in survey["gpus"] if one["of"] == vendor)
    return found


# NVIDIA


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.scenario)
def test_nvidia(kind: Kind, teho, nvml_library: Path, home: Path) -> None:
    scenario = Scenario.load(kind.scenario)
    env = nvml_stub.environment(nvml_library, nvml_stub.SCENARIOS / f"{kind.scenario}.txt")

    told = answers(json.loads(teho("devices", "--format", "json", env=env).stdout), "nvidia")
    assert len(told["devices"]) == kind.gpus

    gpus: tuple[GpuSummary, ...] = ()
    for seconds in ("2.5", "20"):
        shutil.rmtree(home / "runs", ignore_errors=True)
        ran = teho("run", "-q", "--every", "200ms", "--", "sleep", seconds, env=env)
        assert ran.returncode == 0
        gpus = gpus_of(home)
        if all(is_told(gpu) == (kind.activity == "told") for gpu in gpus):
            break  # else the machine may have been too busy for the two samples of an activity
    assert len(gpus) == kind.gpus
    for gpu in gpus:
        activity = gpu.stats[ACTIVITY]
        assert is_told(gpu) == (kind.activity == "told")
        if isinstance(activity, Missing):
            assert kind.activity in activity.detail
        if gpu.device.parent_id:
            assert kind.has_instances
            assert isinstance(gpu.energy_j, Missing)
            assert "whole GPU" in gpu.energy_j.detail
            continue
        assert gpu.energy_source == "counter"
        power = gpu.stats["gpu_power_w"]
        assert isinstance(power, Stat)
        assert isinstance(gpu.energy_j, float)
        step = scenario.at(gpu.device.index, 1.0)
        module_w = scenario.energy_j(gpu.device.index, 1.0) - step.power_w
        assert power.mean == pytest.approx(step.power_w, rel=0.001)
        temperature = gpu.stats["gpu_temperature_c"]
        assert isinstance(temperature, Stat)
        # It is read at a fifth of the samples, and must not count as recorded for a fifth.
        assert temperature.covered_s == power.covered_s
        # A counter is read before or after its row's time: on a busy machine, by half a second.
        drawn_w = step.power_w + module_w
        assert gpu.energy_j == pytest.approx(drawn_w * power.covered_s, abs=0.5 * drawn_w)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.scenario)
def test_nvidia_energy_is_the_drivers_to_a_thousandth(
    kind: Kind, teho, nvml_library: Path, home: Path
) -> None:
    scenario = Scenario.load(kind.scenario)
    env = nvml_stub.environment(nvml_library, nvml_stub.SCENARIOS / f"{kind.scenario}.txt")
    saved = teho("energy", "--save", env={**env, "TEHO_STUB_NVML_NOW": "10"})
    if kind.has_instances:
        assert saved.returncode == 2
        assert "whole GPU" in saved.stderr
        return
    assert saved.returncode == 0, saved.stderr
    shown = teho("energy", "--diff", env={**env, "TEHO_STUB_NVML_NOW": "25"}).stdout
    lines = [line for line in shown.splitlines() if line.startswith("GPU")]
    assert len(lines) == kind.gpus
    for gpu, line in enumerate(lines):
        true_j = scenario.energy_j(gpu, 25) - scenario.energy_j(gpu, 10)
        told_wh = float(line.split()[2])
        # Its two digits after the point round more than a thousandth.
        assert told_wh == pytest.approx(true_j / 3600, rel=0.001, abs=0.0051)


# AMD


class On(NamedTuple):
    """A node of AMD GPUs, on which commands run."""

    tree: AmdTree
    home: Path

    def argv(self, *words: str) -> list[str]:
        return [sys.executable, "-c", ON_TREE, str(self.tree.root), *words]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.argv(*words), capture_output=True, text=True, timeout=120, check=False
        )

    def draw(self, elapsed_s: float, power_w: Sequence[float]) -> None:
        for gpu, watts in zip(self.tree.gpus, power_w, strict=True):
            gpu.run(elapsed_s, power_w=watts)


TREES: dict[str, tuple[Callable[..., AmdTree], list[float], int]] = {
    # Of each card the first die's counter counts for both, the second one's nothing.
    "mi250x": (build_mi250x, [300.0, 0.0] * 4, 8),
    "mi300a": (build_mi300a, [400.0] * 4, 4),
}


@pytest.fixture(params=TREES)
def amd(request: pytest.FixtureRequest, tmp_path: Path, home: Path) -> tuple[On, list[float]]:
    build, power_w, count = TREES[request.param]
    tree = build(tmp_path / "node")
    assert len(tree.gpus) == count
    on = On(tree, home)
    on.draw(1, power_w)
    return on, power_w


def test_amd_devices(amd: tuple[On, list[float]]) -> None:
    on, power_w = amd
    told = answers(json.loads(on.run("devices", "--format", "json").stdout), "amd")
    assert len(told["devices"]) == len(power_w)


def test_amd_energy(amd: tuple[On, list[float]]) -> None:
    on, power_w = amd
    saved = on.run("energy", "--save")
    assert saved.returncode == 0, saved.stderr
    on.draw(3600, power_w)
    shown = on.run("energy", "--diff").stdout.splitlines()
    told_wh = {int(line.split()[1][:-1]): float(line.split()[2]) for line in shown[:-1]}
    expected = {gpu: watts for gpu, watts in enumerate(power_w) if watts}
    assert told_wh == {gpu: pytest.approx(watts, rel=0.001) for gpu, watts in expected.items()}
    assert float(shown[-1].split()[1]) == pytest.approx(sum(power_w), rel=0.001)


def test_amd_recorded(amd: tuple[On, list[float]]) -> None:
    on, power_w = amd
    process = subprocess.Popen(
        on.argv("run", "-q", "--every", "200ms", "--", "cat"), stdin=subprocess.PIPE
    )

    def tick() -> None:
        """Let next to no time pass: a counter that stands still is not believed."""
        on.draw(0.01, power_w)
        time.sleep(0.1)

    until_s = time.monotonic() + 60
    while not list(on.home.glob("runs/*/live/*")):
        assert time.monotonic() < until_s
        tick()
    on.draw(3600, power_w)
    for _ in range(10):
        tick()
    process.communicate()
    assert process.returncode == 0
    gpus = gpus_of(on.home)
    assert len(gpus) == len(power_w)
    for gpu, watts in zip(gpus, power_w, strict=True):
        if watts:
            assert gpu.energy_j == pytest.approx(3600 * watts, rel=0.001)
        else:
            assert isinstance(gpu.energy_j, Missing)


# None


def test_no_gpu(teho, tmp_path: Path, home: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_text("no library")
    env = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    assert teho("devices", env=env).stdout.startswith("i No GPU here")
    assert teho("energy", "--save", env=env).returncode == 2
    assert teho("run", "-q", "--", "true", env=env).returncode == 0
    assert gpus_of(home) == ()
