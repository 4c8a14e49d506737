"""Energy of processors and nodes: counters that turn over, and files that only root may read."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from stubs.amd_tree import RefusingKernel, reason_of
from stubs.proc_tree import plant
from teho.devices.host import energy as host_energy
from teho.devices.host.energy import HostEnergy, open_host_energy
from teho.devices.host.part import Part
from teho.model.device import Reading
from teho.model.metric import METRICS_BY_NAME
from teho.model.missing import Missing, Reason

RANGE_UJ = 262_143_328_850
"""As an Intel Xeon has it: 262 kJ."""


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 1000.0
        monkeypatch.setattr(host_energy, "monotonic", lambda: self.now_s)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def add_zone(root: Path, zone: str, name: str, energy_uj: int) -> None:
    folder = f"sys/class/powercap/{zone}"
    plant(
        root,
        {
            f"{folder}/name": f"{name}\n",
            f"{folder}/energy_uj": f"{energy_uj}\n",
            f"{folder}/max_energy_range_uj": f"{RANGE_UJ}\n",
        },
    )


def two_sockets(root: Path, *energies_uj: int) -> Path:
    """Two processors with their parts and memories, and the second view of the first."""
    names = ["package-0", "core", "dram", "package-1", "core", "dram", "psys", "package-0"]
    zones = ["0", "0:0", "0:1", "1", "1:0", "1:1", "2", ""]
    for zone, name, energy_uj in zip(zones, names, energies_uj, strict=True):
        add_zone(root, f"intel-rapl:{zone}" if zone else "intel-rapl-mmio:0", name, energy_uj)
    (root / "sys/class/powercap/intel-rapl").mkdir(exist_ok=True)
    return root


def add_meter(root: Path, power_uw: int, hwmon: str = "hwmon2/device") -> None:
    folder = f"sys/class/hwmon/{hwmon}"
    plant(root, {f"{folder}/name": "power_meter\n", f"{folder}/power1_average": f"{power_uw}\n"})


def figures(energy: Part) -> dict[str, Reading]:
    readings = energy.read()
    assert set(readings) == set(HostEnergy.metrics) <= set(METRICS_BY_NAME)
    return readings


def test_packages_and_memories_are_added_up_and_nothing_twice(tmp_path: Path, clock: Clock):
    """The naive sum of all zones counts cores and the other view of a package once more."""
    root = two_sockets(tmp_path, *[7_000_000] * 8)
    energy = HostEnergy(root)
    first = figures(energy)
    assert (first["cpu_energy_j"], first["memory_energy_j"]) == (0, 0)
    clock.now_s += 10
    million = 1_000_000
    two_sockets(
        tmp_path, 2007 * million, 1800 * million, 157 * million, 1507 * million, 1400 * million,
        107 * million, 9000 * million, 2007 * million,
    )  # fmt: skip
    later = figures(energy)
    assert later["cpu_energy_j"] == pytest.approx(2000 + 1500)
    assert later["memory_energy_j"] == pytest.approx(150 + 100)
    assert reason_of(later["node_energy_j"]) is Reason.ABSENT
    energy.close()


def test_a_counter_turns_over(tmp_path: Path, clock: Clock):
    """Naive: it fell, so it was reset, and what it counted before the turn is lost."""
    add_zone(tmp_path, "intel-rapl:0", "package-0", RANGE_UJ - 50_000_000)
    energy = HostEnergy(tmp_path)
    energy.read()
    for seconds, energy_uj in ((1, 150_000_000), (2, 350_000_000)):
        clock.now_s += 1
        add_zone(tmp_path, "intel-rapl:0", "package-0", energy_uj)
        assert energy.read()["cpu_energy_j"] == pytest.approx(200 * seconds, rel=1e-6)
    energy.close()


def test_a_counter_that_was_reset_is_no_turn(tmp_path: Path, clock: Clock):
    """After a suspend it begins at 0: a turn would be 162 kJ within a second."""
    add_zone(tmp_path, "intel-rapl:0", "package-0", 100_000_000_000)
    energy = HostEnergy(tmp_path)
    energy.read()
    clock.now_s += 1
    add_zone(tmp_path, "intel-rapl:0", "package-0", 90_000_000)
    assert energy.read()["cpu_energy_j"] == pytest.approx(90)
    energy.close()


def test_after_too_long_a_pause_the_overflows_are_unknown(tmp_path: Path, clock: Clock):
    add_zone(tmp_path, "intel-rapl:0", "package-0", 1_000_000)
    energy = HostEnergy(tmp_path)
    energy.read()
    clock.now_s += 3600
    add_zone(tmp_path, "intel-rapl:0", "package-0", 2_000_000)
    assert reason_of(energy.read()["cpu_energy_j"]) is Reason.UNRECORDED
    clock.now_s += 1
    add_zone(tmp_path, "intel-rapl:0", "package-0", 102_000_000)
    assert energy.read()["cpu_energy_j"] == pytest.approx(100)
    energy.close()


def test_what_only_root_may_read_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    root = two_sockets(tmp_path, *[7_000_000] * 8)
    RefusingKernel(monkeypatch).refused_open["energy_uj"] = errno.EACCES
    energy = HostEnergy(root)
    for name in ("cpu_energy_j", "memory_energy_j"):
        reading = figures(energy)[name]
        assert isinstance(reading, Missing)
        assert reason_of(reading) is Reason.FORBIDDEN
        assert "CVE-2020-8694" in reading.detail
    energy.close()


def test_nothing_at_all_is_absent_and_not_zero(tmp_path: Path):
    readings = figures(HostEnergy(tmp_path))
    assert {reason_of(reading) for reading in readings.values()} == {Reason.ABSENT}


def test_a_processor_that_does_not_count_its_memory(tmp_path: Path):
    add_zone(tmp_path, "intel-rapl:0", "package-0", 1_000_000)
    energy = HostEnergy(tmp_path)
    assert reason_of(figures(energy)["memory_energy_j"]) is Reason.UNSUPPORTED
    energy.close()


@pytest.mark.parametrize("hwmon", ["hwmon2", "hwmon2/device"])
def test_the_firmwares_power_meter(tmp_path: Path, clock: Clock, hwmon: str):
    plant(tmp_path, {"sys/class/hwmon/hwmon0/name": "coretemp\n"})
    add_meter(tmp_path, 612_000_000, hwmon)
    energy = HostEnergy(tmp_path)
    assert figures(energy)["node_power_w"] == 612
    add_meter(tmp_path, 700_000_000, hwmon)
    clock.now_s += 0.1
    # It is slow, and its figure is a mean over a second: not asked ten times as often.
    assert figures(energy)["node_power_w"] == 612
    clock.now_s += 0.9
    assert figures(energy)["node_power_w"] == 700
    add_meter(tmp_path, 0, hwmon)
    clock.now_s += 1
    assert reason_of(figures(energy)["node_power_w"]) is Reason.FAILED
    energy.close()


def test_of_several_power_meters_none_is_taken(tmp_path: Path):
    add_meter(tmp_path, 612_000_000, "hwmon2")
    add_meter(tmp_path, 300_000_000, "hwmon3")
    assert reason_of(figures(HostEnergy(tmp_path))["node_power_w"]) is Reason.UNSUPPORTED


def test_ipmi_is_named_if_it_is_the_only_source(tmp_path: Path):
    plant(tmp_path, {"dev/ipmi0": ""})
    reading = figures(HostEnergy(tmp_path))["node_power_w"]
    assert isinstance(reading, Missing)
    assert reason_of(reading) is Reason.FORBIDDEN
    assert "/dev/ipmi0" in reading.detail


def test_on_a_cray_rapl_is_not_read(tmp_path: Path):
    add_zone(tmp_path, "intel-rapl:0", "package-0", 1_000_000)
    stamp = "1700000000123456 us"
    counters = {"energy": f"921658274 J {stamp}", "power": f"1800 W {stamp}",
                "cpu_energy": f"4711 J {stamp}", "memory_energy": f"815 J {stamp}",
                "freshness": "42"}  # fmt: skip
    plant(tmp_path, {f"sys/cray/pm_counters/{name}": text for name, text in counters.items()})
    energy = open_host_energy(tmp_path)
    assert figures(energy) == {
        "node_energy_j": 921658274, "node_power_w": 1800, "cpu_energy_j": 4711,
        "memory_energy_j": 815,
    }  # fmt: skip
    energy.close()
