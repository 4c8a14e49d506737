from __future__ import annotations

from pathlib import Path

import pytest

from stubs.amd_tree import reason_of
from teho.devices.host.cray import PmCounters
from teho.model.missing import Reason


class Blade:
    """A node's controller, which passes its figures on as files, and the clock on the wall."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "sys/cray/pm_counters"
        self.folder.mkdir(parents=True)
        self.now_s = 50.0
        self.freshness = 7
        self.figures = {
            "energy": "921658274 J",
            "power": "2412 W",
            "cpu_energy": "103200417 J",
            "memory_energy": "41002118 J",
            "accel0_energy": "170111222 J",
        }
        self.update()
        self.counters = PmCounters(root, clock=lambda: self.now_s)

    def update(self, elapsed_s: float = 0.0, **figures: str) -> None:
        """Let time pass and write all figures anew."""
        self.now_s += elapsed_s
        self.freshness += 1
        self.figures |= figures
        stamp_us = 1_700_000_000_000_000 + round(self.now_s * 1e6)
        for name, figure in self.figures.items():
            self.write(name, f"{figure} {stamp_us} us\n")
        self.write("freshness", f"{self.freshness}\n")

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)


@pytest.fixture
def blade(tmp_path: Path) -> Blade:
    return Blade(tmp_path)


def test_figures_of_the_node(blade: Blade) -> None:
    assert blade.counters.read() == {
        "node_energy_j": 921658274.0,
        "node_power_w": 2412.0,
        "cpu_energy_j": 103200417.0,
        "memory_energy_j": 41002118.0,
    }
    blade.update(10, energy="921682394 J", power="0 W")
    readings = blade.counters.read()
    assert readings["node_energy_j"] == 921682394.0
    assert reason_of(readings["node_power_w"]) is Reason.FAILED
    assert tuple(readings) == blade.counters.metrics


def test_early_systems_write_no_time_stamp(blade: Blade) -> None:
    blade.write("energy", "5 J\n")
    assert blade.counters.read()["node_energy_j"] == 5.0


@pytest.mark.parametrize(
    "text", ["", "N/A\n", "5\n", "5 W 1 us\n", "-5 J 1 us\n", "5 J 1\n", "5.5 J 1 us\n", "J\n"]
)
def test_nonsense_is_never_a_number(blade: Blade, text: str) -> None:
    blade.write("energy", text)
    readings = blade.counters.read()
    assert reason_of(readings["node_energy_j"]) is Reason.FAILED
    assert readings["node_power_w"] == 2412.0


def test_node_without_one_of_the_counters(blade: Blade) -> None:
    (blade.folder / "memory_energy").unlink()
    readings = blade.counters.read()
    assert reason_of(readings["memory_energy_j"]) is Reason.ABSENT
    assert readings["cpu_energy_j"] == 103200417.0


def test_counters_that_are_no_longer_refreshed_are_a_failure(blade: Blade) -> None:
    """An energy that stands still would read as no energy, and the last power as the present."""
    blade.counters.read()
    blade.now_s += 1.9
    assert blade.counters.read()["node_power_w"] == 2412.0
    blade.now_s += 0.1
    for value in blade.counters.read().values():
        assert reason_of(value) is Reason.FAILED
    blade.update(0.1)
    assert blade.counters.read()["node_power_w"] == 2412.0


def test_without_freshness_the_age_is_not_judged(blade: Blade) -> None:
    (blade.folder / "freshness").unlink()
    for _ in range(3):
        blade.now_s += 60
        assert blade.counters.read()["node_power_w"] == 2412.0


def test_files_are_kept_open_and_given_back(blade: Blade) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    blade.counters.read()
    assert len(list(Path("/proc/self/fd").iterdir())) == before + 5
    blade.counters.close()
    blade.counters.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
