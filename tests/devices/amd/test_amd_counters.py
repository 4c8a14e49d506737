from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stubs.amd_models import MI210
from stubs.amd_table import TICK_J, Firmware
from stubs.amd_tree import (
    NOBODY,
    AmdTree,
    GpuTree,
    build_amd,
    build_mi100,
    build_mi210,
    build_mi250x,
    build_mi300a,
    build_mi300x,
    open_amd,
    reason_of,
)
from teho.model.device import Reading
from teho.model.missing import Missing, Reason

Build = Callable[[Path], AmdTree]


class One:
    """A source, and the GPU of it that a test looks at."""

    def __init__(self, tree: AmdTree) -> None:
        self.gpu: GpuTree = tree.gpus[0]
        self.source = open_amd(tree)

    def read(self) -> dict[str, Reading]:
        return self.gpu.of(self.source.read(NOBODY))

    def step(self, elapsed_s: float = 1, **truth: float) -> dict[str, Reading]:
        self.gpu.run(elapsed_s, **truth)
        return self.read()

    def energy_j(self) -> float:
        energy_j = self.read()["gpu_energy_j"]
        assert isinstance(energy_j, float)
        return energy_j


def mi210(root: Path, table: tuple[int, int] = (1, 3)) -> One:
    tree = build_mi210(root, count=1)
    tree.gpus[0].firmware = Firmware(table)
    tree.gpus[0].write_table()
    return One(tree)


def mi300x(root: Path, table: tuple[int, int] = (1, 8), activity_started: int = 0) -> One:
    tree = build_mi300x(root, count=1)
    tree.gpus[0].firmware = Firmware(table, activity_started=activity_started)
    tree.gpus[0].write_table()
    return One(tree)


# --- energy ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "build", [build_mi100, build_mi210, build_mi250x, build_mi300a, build_mi300x]
)
def test_energy_is_the_trees_truth(tmp_path: Path, build: Build) -> None:
    """The 15.3 uJ of AMD's libraries would be 0.27 % too much."""
    one = One(build(tmp_path))
    before_j = one.energy_j()
    for second in range(1, 21):
        one.step(power_w=100 + 20 * second)
    assert one.energy_j() - before_j == pytest.approx(20 * 310, rel=1e-4)
    assert one.source.alerts() == []


@pytest.mark.parametrize("table", [(1, 1), (1, 2), (1, 4), (1, 5), (1, 6), (1, 7), (1, 8)])
def test_energy_from_every_revision(tmp_path: Path, table: tuple[int, int]) -> None:
    one = mi300x(tmp_path, table)
    before_j = one.energy_j()
    one.step(60, power_w=650)
    assert one.energy_j() - before_j == pytest.approx(39_000, rel=1e-4)


def test_unit_of_a_gpu_that_is_not_known_is_not_guessed(tmp_path: Path) -> None:
    tree = build_mi210(tmp_path, count=1)
    node = tree.gpus[0].node
    assert node is not None
    properties = node / "properties"
    properties.write_text(properties.read_text().replace(" 90010", " 100300"))
    values = One(tree).read()
    assert reason_of(values["gpu_energy_j"]) is Reason.UNSUPPORTED
    assert "gfx1030" in values["gpu_energy_j"].detail  # type: ignore[union-attr]


def test_counter_of_32_bits_continues_after_an_overflow(tmp_path: Path) -> None:
    """The naive difference is negative, or lacks 65.5 kJ each time."""
    one = One(build_mi100(tmp_path))
    before_j = one.energy_j()
    for _ in range(900):
        one.step(power_w=290)
    full_j = 2**32 * TICK_J
    assert 3 * full_j < 900 * 290
    assert one.energy_j() - before_j == pytest.approx(900 * 290, rel=1e-4)
    assert one.source.alerts() == []


def test_reset_of_a_counter_of_32_bits_is_not_taken_for_a_wrap(tmp_path: Path) -> None:
    one = One(build_mi100(tmp_path))
    one.gpu.firmware.energy_j = 20_000.0
    one.step(power_w=290)
    one.gpu.firmware.reset()
    values = one.step(power_w=290)
    assert values["gpu_energy_j"] == pytest.approx(290)
    assert "started again from 0" in one.source.alerts()[0]


def test_reset_is_passed_on_and_reported_once(tmp_path: Path) -> None:
    one = mi210(tmp_path)
    one.step(power_w=200)
    one.gpu.firmware.reset()
    assert one.step(2, power_w=200)["gpu_energy_j"] == pytest.approx(400)
    assert one.step(1, power_w=200)["gpu_energy_j"] == pytest.approx(600)
    (alert,) = one.source.alerts()
    assert one.source.devices[0].id in alert
    assert one.source.alerts() == []


def test_step_back_is_a_failure_and_no_reset(tmp_path: Path) -> None:
    """Taken for a reset, one such answer adds all energy since boot: ROCm/amdsmi issue 115."""
    one = mi210(tmp_path)
    before_j = one.energy_j()
    one.step(power_w=200)
    one.gpu.firmware.energy_j -= 213
    assert reason_of(one.step(0)["gpu_energy_j"]) is Reason.FAILED
    one.gpu.firmware.energy_j += 213
    one.step(power_w=200)
    assert one.energy_j() - before_j == pytest.approx(400, rel=1e-3)
    assert one.source.alerts() == []


def test_counter_that_stopped_is_a_failure_until_it_grows(tmp_path: Path) -> None:
    """Seen on MI100 and MI210: a difference of 0 J would be wrong while the GPU draws power."""
    one = mi210(tmp_path)
    one.step(power_w=200)
    one.gpu.firmware.still = True
    assert isinstance(one.step(0.5, power_w=200)["gpu_energy_j"], float)
    for _ in range(3):
        assert reason_of(one.step(power_w=200)["gpu_energy_j"]) is Reason.FAILED
    (alert,) = one.source.alerts()
    assert "210 W" in alert
    one.gpu.firmware.still = False
    assert isinstance(one.step(power_w=200)["gpu_energy_j"], float)
    one.gpu.firmware.still = True
    one.step(power_w=200)
    one.step(power_w=200)
    assert len(one.source.alerts()) == 1


def test_counter_that_stopped_without_power_is_no_failure(tmp_path: Path) -> None:
    one = mi210(tmp_path)
    one.gpu.write("power1_average", "N/A")
    one.gpu.firmware.still = True
    for _ in range(3):
        assert one.step()["gpu_energy_j"] == pytest.approx(1e6)


def test_counter_at_zero_is_a_failure_but_on_a_silent_die(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    whole = build_mi210(tmp_path / "a", count=1)
    whole.gpus[0].firmware.reports_energy = False
    whole.gpus[0].write_table()
    assert reason_of(One(whole).read()["gpu_energy_j"]) is Reason.FAILED
    dies = build_mi250x(tmp_path / "b")
    readings = open_amd(dies).read(NOBODY)
    silent = dies.gpus[1].of(readings)["gpu_energy_j"]
    assert isinstance(silent, Missing)
    assert silent.reason is Reason.UNSUPPORTED
    assert "other die" in silent.detail


def test_driver_that_leaves_energy_out(tmp_path: Path) -> None:
    tree = build_amd(tmp_path, MI210, [0x11])
    table = bytearray(tree.gpus[0].firmware.table())
    table[24:32] = b"\xff" * 8
    tree.gpus[0].write_table(bytes(table))
    assert reason_of(One(tree).read()["gpu_energy_j"]) is Reason.UNSUPPORTED


# --- activity --------------------------------------------------------------------------------


def proven(one: One, busy: int, memory: int = 0) -> None:
    """Let the running sums agree with the driver's own figures for long enough."""
    one.gpu.write("gpu_busy_percent", busy)
    one.gpu.write("mem_busy_percent", memory)
    for _ in range(20):
        one.step(busy=busy, memory=memory)


@pytest.mark.parametrize("table", [(1, 2), (1, 3), (1, 4), (1, 5), (1, 6), (1, 7), (1, 8)])
def test_busy_is_the_mean_since_the_last_reading(tmp_path: Path, table: tuple[int, int]) -> None:
    """A loader that starves the GPU: whoever looks at one moment sees 90 or 0."""
    one = mi300x(tmp_path, table)
    proven(one, busy=90, memory=40)
    one.gpu.run(0.25, busy=90, memory=40)
    values = one.step(0.75, busy=0, memory=0)
    assert values["gpu_busy_percent"] == pytest.approx(22.5, rel=1e-3)
    assert values["gpu_dram_percent"] == pytest.approx(10, rel=1e-3)


def test_sums_of_32_bits_continue_after_an_overflow(tmp_path: Path) -> None:
    one = mi300x(tmp_path, activity_started=2**32 - 25_000)
    proven(one, busy=60, memory=30)  # 1.2 million steps of the sum: full on the way
    values = one.step(busy=60, memory=30)
    assert values["gpu_busy_percent"] == pytest.approx(60, rel=1e-3)
    assert values["gpu_dram_percent"] == pytest.approx(30, rel=1e-3)


def test_count_of_steps_continues_after_an_overflow(tmp_path: Path) -> None:
    one = mi300x(tmp_path, activity_started=2**32 - 20_500)
    proven(one, busy=60)
    assert one.step(busy=30)["gpu_busy_percent"] == pytest.approx(30, rel=1e-3)


def test_sum_in_another_unit_is_never_used(tmp_path: Path) -> None:
    """Where the firmware adds every 10 ms, the mean would be a tenth of the truth."""
    one = mi210(tmp_path)
    one.gpu.write("gpu_busy_percent", 90)
    for _ in range(60):
        assert one.step(busy=9)["gpu_busy_percent"] == 90


def test_sum_that_was_not_compared_is_not_used(tmp_path: Path) -> None:
    one = mi210(tmp_path)
    one.gpu.write("gpu_busy_percent", 50)
    values = [one.step(busy=40)["gpu_busy_percent"] for _ in range(20)]
    assert values[:19] == [50] * 19
    assert values[19] == pytest.approx(40)


def test_reset_in_mid_run_gives_the_figure_of_the_moment(tmp_path: Path) -> None:
    one = mi300x(tmp_path)
    proven(one, busy=60)
    one.gpu.firmware.reset()
    assert one.step(busy=10)["gpu_busy_percent"] == 60
    assert one.step(busy=40)["gpu_busy_percent"] == pytest.approx(40)


def test_busy_file_that_fails_is_not_papered_over(tmp_path: Path) -> None:
    one = mi300x(tmp_path)
    proven(one, busy=60)
    one.gpu.write("gpu_busy_percent", "N/A")
    assert reason_of(one.step(busy=60)["gpu_busy_percent"]) is Reason.FAILED


def test_memory_activity_is_bandwidth_on_mi300_and_time_before(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    old, new = mi210(tmp_path / "old"), mi300x(tmp_path / "new")
    for one in (old, new):
        one.gpu.write("mem_busy_percent", 37)
    assert old.read()["gpu_memory_busy_percent"] == 37
    assert reason_of(old.read()["gpu_dram_percent"]) is Reason.UNSUPPORTED
    assert new.read()["gpu_dram_percent"] == 37
    assert reason_of(new.read()["gpu_memory_busy_percent"]) is Reason.UNSUPPORTED


# --- throttling ------------------------------------------------------------------------------


def throttle(values: dict[str, Reading]) -> tuple[Reading, Reading]:
    return values["gpu_thermal_throttle_percent"], values["gpu_power_throttle_percent"]


@pytest.mark.parametrize(
    ("bit", "expected"),
    [
        (0, (0, 100)),  # the package's power
        (7, (0, 100)),
        (16, (0, 100)),  # the current of a rail
        (23, (0, 100)),
        (32, (100, 0)),  # the GPU's temperature
        (34, (100, 0)),
        (47, (100, 0)),  # PROCHOT
        (57, (0, 0)),  # FIT, which is neither
    ],
)
def test_causes_that_are_the_same_for_all_gpus(
    tmp_path: Path, bit: int, expected: tuple[int, int]
) -> None:
    one = mi210(tmp_path)
    one.gpu.firmware.causes = 1 << bit
    assert throttle(one.step()) == expected


@pytest.mark.parametrize("table", [(1, 4), (1, 5)])
@pytest.mark.parametrize(
    ("bits", "expected"), [(0, (0, 0)), (0b10, (0, 100)), (0b1, (100, 0)), (0b10010, (100, 100))]
)
def test_causes_of_mi300(
    tmp_path: Path, table: tuple[int, int], bits: int, expected: tuple[int, int]
) -> None:
    one = mi300x(tmp_path, table)
    one.gpu.firmware.causes = bits
    assert throttle(one.step()) == expected


@pytest.mark.parametrize("table", [(1, 6), (1, 7), (1, 8)])
def test_share_of_time_if_the_firmware_counts_it(tmp_path: Path, table: tuple[int, int]) -> None:
    one = mi300x(tmp_path, table)
    one.gpu.run(0.5, hot=0, capped=100)
    values = one.step(0.5, hot=40, capped=50)
    assert throttle(values) == (pytest.approx(20, rel=1e-3), pytest.approx(75, rel=1e-3))


def test_share_of_no_time_is_left_out(tmp_path: Path) -> None:
    one = mi300x(tmp_path)
    assert "gpu_thermal_throttle_percent" not in one.read()


@pytest.mark.parametrize("table", [(1, 0), (1, 1), (1, 2)])
def test_old_tables_do_not_say_why(tmp_path: Path, table: tuple[int, int]) -> None:
    thermal, power = throttle(mi210(tmp_path, table).step())
    assert reason_of(thermal) is reason_of(power) is Reason.UNSUPPORTED
