"""The energy counters alone, through the real bindings and files."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pynvml
import pytest
from nvml_stub import Scenario, gpu_uuid

from stubs.amd_tree import build_mi100, build_mi250x, build_mi300a
from teho.devices.meter import Meter, added, counted_with, drawn, without_counter
from teho.devices.sources import VENDORS
from teho.devices.vendor import Vendor
from teho.errors import DeviceError
from teho.model.device import Device
from teho.model.missing import Missing, Reason


@pytest.fixture(scope="session")
def library(nvml_library: Path) -> ctypes.CDLL:
    return ctypes.CDLL(str(nvml_library / "libnvidia-ml.so.1"))


class Bench:
    """A node whose driver is the stub, with a clock that the test sets."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tmp_path, self.monkeypatch = tmp_path, monkeypatch
        self.meters: list[Meter] = []
        self.at(0)

    def at(self, now_s: float) -> None:
        self.monkeypatch.setenv("TEHO_STUB_NVML_NOW", repr(now_s))

    def open(self, scenario: Scenario, **environment: str) -> Meter:
        path = scenario.write(self.tmp_path / "scenario.txt")
        self.monkeypatch.setenv("TEHO_STUB_NVML", str(path))
        meter = Meter(environment, self.tmp_path)
        self.meters.append(meter)
        return meter


@pytest.fixture
def bench(library: ctypes.CDLL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pynvml, "nvmlLib", library)
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    bench = Bench(tmp_path, monkeypatch)
    yield bench
    for meter in bench.meters:
        meter.close()


def test_figures_are_those_of_the_trace(bench: Bench):
    scenario = Scenario.load("h100x8_busy")
    meter = bench.open(scenario)
    assert [device.id for device in meter.devices] == [gpu_uuid(gpu) for gpu in range(8)]
    bench.at(7)
    before = meter.read()
    bench.at(187.5)
    figures = drawn(meter.devices, before, meter.read(), 180.5)
    for gpu, figure in enumerate(figures):
        truth = scenario.energy_j(gpu, 187.5) - scenario.energy_j(gpu, 7)
        assert figure == pytest.approx(truth, rel=1e-3)
    assert added(meter.devices, figures) == pytest.approx(sum(figures))


def test_only_visible_gpus_count(bench: Bench):
    meter = bench.open(Scenario.load("h100x8_busy"), CUDA_VISIBLE_DEVICES=f"5,{gpu_uuid(2)}")
    assert [device.id for device in meter.devices] == [gpu_uuid(5)]
    meter = bench.open(
        Scenario.load("h100x8_busy"), CUDA_VISIBLE_DEVICES=f"{gpu_uuid(5)},{gpu_uuid(2)}"
    )
    assert [device.id for device in meter.devices] == [gpu_uuid(5), gpu_uuid(2)]


def test_a_counter_that_was_reset_has_no_figure(bench: Bench):
    """Naive: the difference of two readings, which is below zero."""
    meter = bench.open(Scenario.load("v100x4"))
    bench.at(50)
    before = meter.read()
    bench.at(10)
    figures = drawn(meter.devices, before, meter.read(), 100)
    assert {figure.reason for figure in figures} == {Reason.FAILED}
    assert "again from 0" in figures[0].detail


def test_a_counter_that_stopped_has_no_figure(bench: Bench):
    meter = bench.open(Scenario.load("v100x4"))
    bench.at(50)
    before = meter.read()
    (figure, *_) = drawn(meter.devices, before, meter.read(), 30)
    assert isinstance(figure, Missing)
    assert "does not change" in figure.detail
    # Between two ticks of 100 ms it does stand still.
    assert drawn(meter.devices, before, meter.read(), 0.05) == [0, 0, 0, 0]


def test_mig_instances_do_not_count_their_gpu_over_and_over(bench: Bench):
    """Naive: a driver that answers for an instance means the whole GPU."""
    meter = bench.open(Scenario.load("a100_mig"))
    assert set(without_counter(meter.devices, meter.read())) == {0, 1}
    assert isinstance(added(meter.devices, drawn(meter.devices, *[meter.read()] * 2, 0)), Missing)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ("NOT_SUPPORTED", Reason.UNSUPPORTED),
        ("NO_PERMISSION", Reason.FORBIDDEN),
        ("GPU_IS_LOST", Reason.FAILED),
    ],
)
def test_one_gpu_without_a_figure_leaves_no_sum(bench: Bench, error: str, reason: Reason):
    line = f"fail nvmlDeviceGetTotalEnergyConsumption 3 {error}"
    meter = bench.open(Scenario.load("v100x4").plus(line))
    before = meter.read()
    bench.at(10)
    figures = drawn(meter.devices, before, meter.read(), 10)
    assert [isinstance(figure, Missing) for figure in figures] == [False, False, False, True]
    total = added(meter.devices, figures)
    assert isinstance(total, Missing)
    assert total.reason is reason


def test_a_module_counter_is_reported_as_one(bench: Bench):
    meter = bench.open(Scenario.load("gh200x2"))
    assert any("module" in note for note in meter.notes)
    before = meter.read()
    bench.at(10)
    # 560 W of the GPU and 150 W of its processor.
    assert drawn(meter.devices, before, meter.read(), 10) == pytest.approx([7100, 7100])


def test_no_gpu_at_all_says_of_each_vendor_why(bench: Bench):
    with pytest.raises(DeviceError) as error:
        bench.open(Scenario.load("no_driver"))
    assert "driver is not loaded" in str(error.value)
    assert "AMD" in str(error.value)


@pytest.mark.parametrize(
    ("variable", "line", "words"),
    [
        ("", "", "none of the 4 NVIDIA GPUs here belongs to this job"),
        ("0", "fail nvmlDeviceGetCount_v2 * NO_PERMISSION", "refuses this user"),
    ],
)
def test_a_driver_without_a_gpu_for_the_job_is_let_go_of(
    bench: Bench, variable: str, line: str, words: str
):
    scenario = Scenario.load("v100x4").plus(line)
    with pytest.raises(DeviceError, match=words):
        bench.open(scenario, CUDA_VISIBLE_DEVICES=variable)
    with pytest.raises(pynvml.NVMLError_Uninitialized):
        pynvml.nvmlDeviceGetCount()


@pytest.fixture
def no_nvidia(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEHO_STUB_NVML", "/nowhere")


@pytest.mark.usefixtures("no_nvidia")
def test_cards_of_two_dies_are_counted_once(tmp_path: Path):
    """The silent dies are no zeros, the sum lacks none of them, and pairs are not by parity."""
    cards = [(1, 4), (0, 3), (2, 6), (7, 5)]
    tree = build_mi250x(tmp_path, cards=cards)
    meter = Meter({}, tmp_path)
    before = meter.read()
    truth = 0.0
    for number, (reporting, _) in enumerate(cards):
        tree.gpus[reporting].run(20, power_w=300 + 50 * number)
        truth += 20 * (300 + 50 * number)
    figures = drawn(meter.devices, before, meter.read(), 20)
    silent = {place: holder for holder, place in cards}
    assert counted_with(meter.devices, figures) == silent
    assert all(isinstance(figures[place], Missing) for place in silent)
    assert without_counter(meter.devices, meter.read()) == {}
    assert added(meter.devices, figures) == pytest.approx(truth, rel=1e-3)
    meter.close()


@pytest.mark.usefixtures("no_nvidia")
def test_a_single_silent_die_has_no_figure(tmp_path: Path):
    build_mi250x(tmp_path)
    meter = Meter({"ROCR_VISIBLE_DEVICES": "1"}, tmp_path)
    assert list(without_counter(meter.devices, meter.read())) == [0]
    meter.close()


@pytest.mark.usefixtures("no_nvidia")
def test_an_apu(tmp_path: Path):
    tree = build_mi300a(tmp_path)
    meter = Meter({}, tmp_path)
    before = meter.read()
    for gpu in tree.gpus:
        gpu.run(30, power_w=400)
    figures = drawn(meter.devices, before, meter.read(), 30)
    assert figures == pytest.approx([12_000] * 4, rel=1e-3)
    meter.close()


@pytest.mark.usefixtures("no_nvidia")
def test_a_counter_of_32_bits_cannot_measure_a_long_time(tmp_path: Path):
    """MI100: after a turn the difference looks like any other, and is 65.5 kJ too small."""
    tree = build_mi100(tmp_path)
    tree.gpus[0].run(10, power_w=290)
    meter = Meter({}, tmp_path)
    before = meter.read()
    assert list(without_counter(meter.devices, before)) == [0]
    tree.gpus[0].run(50, power_w=290)
    assert drawn(meter.devices, before, meter.read(), 50) == pytest.approx([14_500], rel=1e-3)
    tree.gpus[0].run(250, power_w=290)
    assert isinstance(drawn(meter.devices, before, meter.read(), 300)[0], Missing)
    meter.close()


@pytest.mark.usefixtures("no_nvidia")
def test_the_gpus_of_a_new_vendor_are_read_through_their_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A vendor is one folder: nothing has to be done here for it."""

    class Source:
        devices = (Device(id="X-0", index=0, name="X", vendor="x"),)
        notes = ("of X",)
        closed = False

        def read(self, pids: frozenset[int], *, ends: bool = False):
            return {"X-0": {"gpu_energy_j": 42.0, "gpu_power_w": 7.0}}

        def close(self) -> None:
            self.closed = True

    source = Source()
    vendor = Vendor("x", lambda *_: source, all_gpus=lambda _: (), versions=lambda _: ())
    monkeypatch.setitem(VENDORS, "x", vendor)
    meter = Meter({}, tmp_path)
    assert (meter.devices, meter.notes, meter.read()) == (source.devices, source.notes, [42.0])
    meter.close()
    assert source.closed
