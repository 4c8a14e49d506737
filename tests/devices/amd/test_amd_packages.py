from __future__ import annotations

import errno
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from stubs.amd_tree import CPU_NODES, NOBODY, build_mi210, build_mi250x, open_amd, reason_of
from teho.devices.amd.source import AmdSource
from teho.model.missing import Reason

NEIGHBOURS = [(0, 1), (2, 3), (4, 5), (6, 7)]


def cards_of(source: AmdSource) -> set[frozenset[int]]:
    """Return the sets of devices, by index, that name one package."""
    packages: dict[str | None, set[int]] = {}
    for device in source.devices:
        packages.setdefault(device.package_id, set()).add(device.index)
    assert None not in packages
    return {frozenset(indices) for indices in packages.values()}


def reporting(source: AmdSource) -> list[int]:
    return [device.index for device in source.devices if device.energy_of == "package"]


def hide(monkeypatch: pytest.MonkeyPatch, positions: set[int]) -> None:
    """Let KFD refuse to tell of some GPUs, as it does where a device cgroup forbids them."""
    honest = Path.read_text
    hidden = {str(CPU_NODES + position) for position in positions}

    def read_text(path: Path, *args: str, **options: str) -> str:
        if (
            path.name == "properties"
            and path.parent.name in hidden
            and "io_links" not in path.parts
        ):
            raise PermissionError(errno.EPERM, "refused")
        return honest(path, *args, **options)

    monkeypatch.setattr(Path, "read_text", read_text)


def test_each_card_is_one_package_and_its_first_die_reports(tmp_path: Path) -> None:
    tree = build_mi250x(tmp_path)
    source = open_amd(tree)
    assert cards_of(source) == set(map(frozenset, NEIGHBOURS))
    assert reporting(source) == [0, 2, 4, 6]
    assert source.notes == ()


@pytest.mark.parametrize(
    "cards",
    [
        [(1, 0), (3, 2), (5, 4), (7, 6)],  # the odd ones report
        [(0, 7), (6, 1), (2, 5), (4, 3)],
        [(0, 4), (1, 5), (2, 6), (3, 7)],  # neither order nor parity nor bus says so
    ],
)
def test_links_identify_the_cards_in_any_order(
    tmp_path: Path, cards: Sequence[tuple[int, int]]
) -> None:
    """ROCm's order may differ from that of the bus: pairs by parity would be wrong here."""
    tree = build_mi250x(tmp_path, cards=cards)
    source = open_amd(tree)
    assert cards_of(source) == set(map(frozenset, cards))
    assert reporting(source) == sorted(first for first, _ in cards)
    readings = source.read(NOBODY)
    for first, silent in cards:
        assert tree.gpus[first].of(readings)["gpu_energy_j"] == pytest.approx(1e6)
        for metric in ("gpu_energy_j", "gpu_power_w"):
            assert reason_of(tree.gpus[silent].of(readings)[metric]) is Reason.UNSUPPORTED


def test_energy_of_a_node_is_the_sum_of_its_packages(tmp_path: Path) -> None:
    """A sum over all GPUs with the silent ones as 0, halves of it, or pairs by parity are wrong."""
    order = list(range(8))
    random.Random(5).shuffle(order)
    cards = list(zip(order[::2], order[1::2], strict=True))
    tree = build_mi250x(tmp_path, cards=cards)
    source = open_amd(tree)
    before = source.read(NOBODY)
    powers_w = (310.0, 420.0, 150.0, 95.0)
    for (first, silent), power_w in zip(cards, powers_w, strict=True):
        tree.gpus[first].run(100, power_w=power_w)
        tree.gpus[silent].run(100, power_w=power_w)
    after = source.read(NOBODY)
    by_package = {
        device.package_id: after[device.id]["gpu_energy_j"] - before[device.id]["gpu_energy_j"]  # type: ignore[operator]
        for device in source.devices
        if device.energy_of == "package"
    }
    assert len(by_package) == 4
    assert sum(by_package.values()) == pytest.approx(100 * sum(powers_w), rel=1e-3)


def test_old_kernel_without_bandwidths_falls_back_on_the_bus(tmp_path: Path) -> None:
    buses = (0xD9, 0xC1, 0xDE, 0xC6)
    tree = build_mi250x(tmp_path, busy=[0] * 4, buses=buses, cards=[(0, 2), (1, 3)])
    for path in tree.kfd.rglob("io_links/*/properties"):
        path.write_text(path.read_text().replace("max_bandwidth", "was_bandwidth"))
    source = open_amd(tree)
    assert cards_of(source) == {frozenset({0, 2}), frozenset({1, 3})}
    assert reporting(source) == [0, 1]
    (note,) = source.notes
    assert "neighbouring PCI addresses" in note


def test_without_kfd_the_bus_identifies_the_cards(tmp_path: Path) -> None:
    tree = build_mi250x(tmp_path)
    tree.remove_kfd()
    source = open_amd(tree)
    assert cards_of(source) == set(map(frozenset, NEIGHBOURS))
    assert len(source.notes) == 2


def test_two_dies_that_both_report_are_separate(tmp_path: Path) -> None:
    tree = build_mi250x(tmp_path, busy=[0, 0])
    tree.gpus[1].firmware.reports_energy = True
    tree.gpus[1].run(1, power_w=100)
    first, second = open_amd(tree).devices
    assert (first.package_id, second.package_id) == (None, None)
    assert (first.energy_of, second.energy_of) == ("device", "device")


def test_whole_cards_need_no_package(tmp_path: Path) -> None:
    source = open_amd(build_mi210(tmp_path))
    assert {device.package_id for device in source.devices} == {None}
    assert {device.energy_of for device in source.devices} == {"device"}


# --- a card that is shared with another job --------------------------------------------------


@pytest.mark.parametrize(
    ("visible", "alone"), [("0,1", 0), ("2,3,6,7", 0), ("0,2", 2), ("5", 1), ("0,1,2", 1)]
)
def test_die_without_its_other_half_is_reported(tmp_path: Path, visible: str, alone: int) -> None:
    notes = open_amd(build_mi250x(tmp_path), ROCR_VISIBLE_DEVICES=visible).notes
    assert len(notes) == bool(alone)
    count = len(visible.split(","))
    for note in notes:
        assert f"{count} of the node's 8 GPUs. On {alone} card" in note
        assert ", the job has only one of the two dies: " in note


@pytest.mark.parametrize("seen", [0, 1])
def test_other_half_that_the_cgroup_hides_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen: int
) -> None:
    """KFD still tells where the fast link leads to: not to the next die that can be seen."""
    tree = build_mi250x(tmp_path)
    hide(monkeypatch, set(range(8)) - {seen, 2, 3})
    source = open_amd(tree)
    assert [device.pci_bus_id for device in source.devices] == [
        tree.gpus[position].address for position in (seen, 2, 3)
    ]
    alone, *card = source.devices
    assert alone.package_id == alone.pci_bus_id
    assert {device.package_id for device in card} == {card[0].pci_bus_id}
    assert alone.energy_of == ("device" if seen else "package")
    (note,) = source.notes
    assert "3 of the node's 8 GPUs. On 1 card, the job has only one of the two dies:" in note


def test_lonely_die_of_an_old_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = build_mi250x(tmp_path)
    for path in tree.kfd.rglob("io_links/*/properties"):
        path.unlink()
    hide(monkeypatch, set(range(8)) - {0, 3})
    first, second = open_amd(tree).devices
    assert first.package_id != second.package_id  # not neighbours among all cards of the node
    assert "On 2 cards" in open_amd(tree).notes[-1]


def test_the_only_link_that_is_seen_need_not_be_the_one_within_a_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = build_mi250x(tmp_path)
    for path in tree.kfd.rglob("io_links/*/properties"):
        path.unlink()
    tree.link(0, 3, 100_000)
    hide(monkeypatch, set(range(8)) - {0, 3})
    first, second = open_amd(tree).devices
    assert first.package_id != second.package_id
