"""Power that is added up where there is no counter; cli/test_energy_command.py has the rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stubs.amd_tree import build_mi250x
from teho.devices.meter import added, counted_with
from teho.devices.sources import VENDORS
from teho.devices.vendor import Vendor
from teho.errors import DeviceError
from teho.model.device import Device
from teho.model.missing import Missing, Reason
from teho.observe import metered
from teho.observe.metered import _Power

X0, X1 = (Device(id=f"X-{at}", index=at, name="X", vendor="x") for at in (0, 1))
LOST = Missing(Reason.FAILED, "the GPU is lost")


class Source:
    """A vendor whose GPUs draw what the test says."""

    devices, notes = (X0, X1), ()

    def __init__(self) -> None:
        self.powers: dict[str, object] = {}

    def read(self, pids: frozenset[int], *, ends: bool = False) -> dict:
        return {name: {"gpu_power_w": value} for name, value in self.powers.items()}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch):
    class Clock:
        now_s = 100.0

        def monotonic(self) -> float:
            return self.now_s

    clock = Clock()
    monkeypatch.setattr(metered, "time", clock)
    return clock


def vendor(open_source: Callable[..., Source]) -> Vendor:
    return Vendor("x", open_source, all_gpus=lambda _: (), versions=lambda _: ())


def test_power_times_time(clock, monkeypatch: pytest.MonkeyPatch):
    source = Source()
    monkeypatch.setitem(VENDORS, "x", vendor(lambda *_: source))
    power = _Power([X0], {})
    for now_s, power_w in ((100, 200), (101, 400), (103, 400), (104, 0)):
        clock.now_s, source.powers = now_s, {"X-0": power_w, "X-1": 9000}
        power.sample()
    # Trapezes: 300 J, 800 J, 200 J; the GPU that has a counter is none of ours.
    assert power.energies_j == {"X-0": 1300}


def test_a_gap_leaves_no_figure(clock, monkeypatch: pytest.MonkeyPatch):
    """Naive: go on when it is back, and lack what was drawn meanwhile."""
    source = Source()
    monkeypatch.setitem(VENDORS, "x", vendor(lambda *_: source))
    power = _Power([X0, X1], {})
    for now_s, power_w in ((100, 200), (101, LOST), (102, 200), (103, 200)):
        clock.now_s, source.powers = now_s, {"X-0": power_w, "X-1": 100}
        power.sample()
    assert power.energies_j == {"X-0": LOST, "X-1": 300}


def test_a_vendor_that_does_not_open_has_none(clock, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> Source:
        raise DeviceError("gone")

    monkeypatch.setitem(VENDORS, "x", vendor(refuse))
    power = _Power([X0], {})
    power.sample()
    (figure,) = power.energies_j.values()
    assert isinstance(figure, Missing)
    assert figure.reason is Reason.UNSUPPORTED


def test_silent_dies_are_neither_zero_nor_lacking(clock, tmp_path: Path):
    tree = build_mi250x(tmp_path)
    source = VENDORS["amd"].open_source({}, tmp_path)
    power = _Power(source.devices, {}, tmp_path)
    for now_s in (100, 110):
        clock.now_s = now_s
        power.sample()
    figures = [power.energies_j[device.id] for device in source.devices]
    assert counted_with(source.devices, figures) == {1: 0, 3: 2, 5: 4, 7: 6}
    truth_w = float(tree.gpus[0].path("power1_average").read_text()) / 1e6
    assert added(source.devices, figures) == pytest.approx(4 * 10 * truth_w, rel=1e-3)
    source.close()
    for opened in power._sources:
        opened.close()
