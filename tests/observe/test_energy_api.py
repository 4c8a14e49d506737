"""`teho.energy()`: figures of the stub's own truth, and reasons instead of zeros."""

from __future__ import annotations

import ctypes
import gc
from pathlib import Path

import pynvml
import pytest
from nvml_stub import Scenario, gpu_uuid

import teho
from teho.errors import InputError
from teho.model.missing import Missing, Reason
from teho.observe import energy as module


@pytest.fixture(scope="session")
def library(nvml_library: Path) -> ctypes.CDLL:
    return ctypes.CDLL(str(nvml_library / "libnvidia-ml.so.1"))


class Node:
    """A node whose driver is the stub; the test sets its clock and Teho's."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._tmp_path, self._monkeypatch = tmp_path, monkeypatch
        monkeypatch.setattr(module, "monotonic", lambda: self.now_s)
        self.at(0)

    def at(self, now_s: float) -> None:
        self.now_s = now_s
        self._monkeypatch.setenv("TEHO_STUB_NVML_NOW", repr(now_s))

    def has(self, scenario: Scenario | str) -> Scenario:
        found = Scenario.load(scenario) if isinstance(scenario, str) else scenario
        path = found.write(self._tmp_path / "scenario.txt")
        self._monkeypatch.setenv("TEHO_STUB_NVML", str(path))
        return found


@pytest.fixture
def node(library: ctypes.CDLL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pynvml, "nvmlLib", library)
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    yield Node(tmp_path, monkeypatch)
    gc.collect()  # the driver is let go of with what was measured


def test_a_block(node: Node):
    scenario = node.has("h100x8_busy")
    node.at(5)
    with teho.energy() as e:
        node.at(30)
        inside = e.read()
        assert inside.elapsed_s == 25
        node.at(105)
    node.at(200)
    truth = {
        gpu_uuid(gpu): scenario.energy_j(gpu, 105) - scenario.energy_j(gpu, 5) for gpu in range(8)
    }
    assert e.by_device == pytest.approx(truth, rel=1e-3)
    assert e.energy_j == pytest.approx(sum(truth.values()), rel=1e-3)
    assert e.elapsed_s == 100
    assert e.power_w == pytest.approx(sum(truth.values()) / 100, rel=1e-3)
    before_30 = [scenario.energy_j(gpu, 30) - scenario.energy_j(gpu, 5) for gpu in range(8)]
    assert inside.energy_j == pytest.approx(sum(before_30), rel=1e-3)


def test_a_function(node: Node):
    scenario = node.has(Scenario(("gpus 1", "0 0 50 1000 400", "10 0 90 1000 600")))

    @teho.energy()
    def train(seconds: float, *, result: str) -> str:
        """Train."""
        node.at(node.now_s + seconds)
        return result

    assert (train.__name__, train.__doc__, train.energy) == ("train", "Train.", None)
    assert train(10, result="done") == "done"
    first = train.energy
    assert first is not None
    assert train(5, result="again") == "again"
    assert first.energy_j == pytest.approx(scenario.energy_j(0, 10))
    assert train.energy is not None
    assert (train.energy.energy_j, train.energy.power_w) == pytest.approx((3000, 600))


def test_calls_within_calls_are_measured_separately(node: Node):
    node.has(Scenario(("gpus 1", "0 0 50 1000 400")))
    found: list[object] = []

    @teho.energy()
    def descend(depth: int) -> None:
        own = descend.energy
        node.at(node.now_s + 10)
        if depth:
            descend(depth - 1)
        assert own is not None
        found.append(own)

    descend(2)
    assert [own.elapsed_s for own in found] == [10, 20, 30]


def test_an_error_passes_and_the_energy_stays(node: Node):
    node.has(Scenario(("gpus 1", "0 0 50 1000 400")))
    e = teho.energy()

    def failing() -> None:
        with e:
            node.at(10)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing()
    assert e.energy_j == pytest.approx(4000)


def test_only_visible_gpus_count(node: Node, monkeypatch: pytest.MonkeyPatch):
    scenario = node.has("h100x8_busy")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "6")
    with teho.energy() as e:
        node.at(20)
    assert e.by_device == pytest.approx({gpu_uuid(6): scenario.energy_j(6, 20)}, rel=1e-3)


def test_without_a_gpu_nothing_fails_and_nothing_is_zero(node: Node):
    node.has("no_driver")
    with teho.energy() as e:
        node.at(3)
    for figure in (e.energy_j, e.power_w):
        assert isinstance(figure, Missing)
        assert figure.reason is Reason.ABSENT
        assert "driver" in figure.detail
    assert (e.by_device, e.elapsed_s, e.notes) == ({}, 3, ())


def test_a_counter_that_is_not_there_makes_the_sum_missing(node: Node):
    node.has(Scenario.load("v100x4").plus(
        "fail nvmlDeviceGetTotalEnergyConsumption 2 NOT_SUPPORTED"
    ))  # fmt: skip
    with teho.energy() as e:
        node.at(3)
    assert isinstance(e.energy_j, Missing)
    assert e.energy_j.reason is Reason.UNSUPPORTED
    assert [isinstance(figure, Missing) for figure in e.by_device.values()] == [
        False, False, True, False,
    ]  # fmt: skip


def test_a_reset_within_the_block_has_no_figure(node: Node):
    node.has("v100x4")
    node.at(50)
    with teho.energy() as e:
        node.at(1)
        node.now_s = 90
    assert isinstance(e.energy_j, Missing)
    assert e.energy_j.reason is Reason.FAILED


def test_a_module_is_named(node: Node):
    node.has("gh200x2")
    with teho.energy() as e:
        node.at(10)
    assert e.energy_j == pytest.approx(2 * 7100, rel=1e-3)
    assert any("module" in note for note in e.notes)


def test_before_the_block_there_is_nothing_to_read(node: Node):
    node.has("v100x4")
    with pytest.raises(InputError, match="with teho"):
        _ = teho.energy().energy_j


def test_no_time_has_no_power(node: Node):
    node.has("v100x4")
    with teho.energy() as e:
        pass
    assert (e.energy_j, e.elapsed_s) == (0, 0)
    assert isinstance(e.power_w, Missing)
