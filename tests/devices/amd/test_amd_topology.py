from __future__ import annotations

import errno
from pathlib import Path

import pytest

from stubs.amd_models import GIB, MI210
from stubs.amd_tree import (
    CPU_NODES,
    NOBODY,
    AmdTree,
    build_amd,
    build_mi100,
    build_mi210,
    build_mi250x,
    build_mi300a,
    build_mi300x,
    open_amd,
    reason_of,
)
from teho.devices.amd.source import AmdSource
from teho.errors import DeviceError
from teho.model.device import DeviceSource
from teho.model.missing import Missing, Reason


def test_a_gpu_has_its_driver_and_the_rocm_of_the_node(tmp_path: Path) -> None:
    tree = build_mi210(tmp_path, count=1)
    (device,) = open_amd(tree).devices
    assert isinstance(device.driver, Missing)
    assert device.driver.reason is Reason.ABSENT
    assert "a part of this kernel" in device.driver.detail
    assert device.platform == Missing(Reason.ABSENT, "there is no file /opt/rocm/.info/version")
    assert isinstance(device.compute_mode, Missing)
    assert device.compute_mode.reason is Reason.UNSUPPORTED
    for name, text in (("sys/module/amdgpu", "6.7.0\n"), ("opt/rocm/.info", "6.2.0-66\n")):
        (tree.root / name).mkdir(parents=True)
        (tree.root / name / "version").write_text(text)
    (device,) = open_amd(tree).devices
    assert (device.driver, device.platform) == ("6.7.0", "ROCm 6.2.0-66")


def test_a_whole_mi250x_node(tmp_path: Path) -> None:
    tree = build_mi250x(tmp_path)
    source: DeviceSource = open_amd(tree)
    assert len(source.devices) == 8
    assert source.notes == ()
    first, second = source.devices[:2]
    assert first.id == f"GPU-{tree.gpus[0].unique_id:016x}"
    assert (first.index, first.vendor, first.name) == (0, "amd", "AMD Instinct MI250X")
    assert first.memory_bytes == 64 * GIB
    assert first.pci_bus_id == "0000:c1:00.0"
    assert (first.power_limit_w, first.power_default_w) == (560.0, 560.0)
    assert second.power_limit_w is None
    assert [device.numa_node for device in source.devices] == [0, 0, 1, 1, 2, 2, 3, 3]


def test_kfd_order_is_the_order_and_each_gpu_keeps_its_own_card(tmp_path: Path) -> None:
    tree = build_amd(tmp_path, MI210, buses=[0xC1, 0x05, 0x83], cards=[1, 2, 0])
    for percent, gpu in zip((10, 20, 30), tree.gpus, strict=True):
        gpu.write("gpu_busy_percent", percent)
    source = open_amd(tree)
    assert [device.pci_bus_id for device in source.devices] == [
        "0000:c1:00.0",
        "0000:05:00.0",
        "0000:83:00.0",
    ]
    readings = source.read(NOBODY)
    assert [readings[device.id]["gpu_busy_percent"] for device in source.devices] == [10, 20, 30]


def test_nodes_are_counted_as_numbers(tmp_path: Path) -> None:
    tree = build_amd(tmp_path, MI210, buses=range(1, 9))  # nodes 4 to 11; as text 10 is before 4
    devices = open_amd(tree).devices
    assert [device.pci_bus_id for device in devices] == [gpu.address for gpu in tree.gpus]


def test_without_kfd_the_pci_order_counts(tmp_path: Path) -> None:
    tree = build_amd(tmp_path, MI210, buses=[0xC1, 0x05], cards=[0, 1])
    tree.remove_kfd()
    source = open_amd(tree)
    assert [device.pci_bus_id for device in source.devices] == ["0000:05:00.0", "0000:c1:00.0"]
    assert source.devices[1].id == f"GPU-{tree.gpus[0].unique_id:016x}"
    assert "KFD" in source.notes[0]
    values = tree.gpus[0].of(source.read(frozenset({1})))
    assert reason_of(values["gpu_job_processes"]) is Reason.ABSENT
    assert reason_of(values["gpu_job_memory_bytes"]) is Reason.ABSENT
    assert values["gpu_busy_percent"] == 0


def test_gpu_without_unique_id_goes_by_its_address(mi210: AmdTree) -> None:
    mi210.remove_kfd()
    mi210.gpus[0].write("unique_id", "")
    source = open_amd(mi210)
    assert source.devices[0].id == "0000:11:00.0"
    assert any("no unique id" in note for note in source.notes)


def test_kfd_of_an_old_kernel_has_no_unique_id_and_the_card_has(mi210: AmdTree) -> None:
    node = mi210.gpus[0].node
    assert node is not None
    (node / "properties").write_text("simd_count 440\nlocation_id 4352\n")
    assert open_amd(mi210).devices[0].id == f"GPU-{mi210.gpus[0].unique_id:016x}"


def test_gpu_that_drm_does_not_show_is_found_on_the_bus(mi210: AmdTree) -> None:
    (mi210.root / "sys/class/drm/card0/device").unlink()
    bus = mi210.root / "sys/bus/pci/devices"
    bus.mkdir(parents=True)
    (bus / "0000:11:00.0").symlink_to(mi210.gpus[0].folder)
    values = mi210.gpus[0].of(open_amd(mi210).read(NOBODY))
    assert values["gpu_busy_percent"] == 0


def test_names(tmp_path: Path) -> None:
    tree = build_mi210(tmp_path, count=3)
    tree.gpus[1].write("product_name", "")
    tree.gpus[2].write("product_name", "")
    tree.gpus[2].write("device", "0x1234")
    names = [device.name for device in open_amd(tree).devices]
    assert names == ["AMD Instinct MI210", "AMD Instinct MI210", "AMD GPU 0x1234"]


def test_unreadable_facts_are_left_out(mi210: AmdTree) -> None:
    mi210.gpus[0].write("numa_node", -1)
    mi210.gpus[0].write("power1_cap", "N/A")
    mi210.gpus[0].write("mem_info_vram_total", "garbage")
    (device,) = open_amd(mi210).devices
    assert (device.numa_node, device.power_limit_w, device.memory_bytes) == (None, None, None)


def test_no_amd_gpu(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="no AMD GPU on this node"):
        AmdSource({}, root=tmp_path)


def test_another_vendors_card_is_none(mi210: AmdTree) -> None:
    mi210.remove_kfd()
    mi210.gpus[0].write("vendor", "0x10de")
    with pytest.raises(DeviceError, match="no AMD GPU on this node"):
        open_amd(mi210)


def test_only_the_gpus_that_the_environment_names(tmp_path: Path) -> None:
    tree = build_mi250x(tmp_path, busy=range(8))
    source = open_amd(tree, ROCR_VISIBLE_DEVICES="6,2")
    assert [device.index for device in source.devices] == [6, 2]
    readings = source.read(NOBODY)
    assert [readings[device.id]["gpu_busy_percent"] for device in source.devices] == [6, 2]
    assert len(readings) == 2


def test_instruction_sets(tmp_path: Path) -> None:
    builders = (build_mi100, build_mi250x, build_mi300a, build_mi300x)
    for number, build in enumerate(builders):
        root = tmp_path / str(number)
        root.mkdir()
        found = {device.architecture for device in open_amd(build(root)).devices}
        assert found == {("gfx908", "gfx90a", "gfx942", "gfx942")[number]}


def test_instruction_set_of_a_gpu_that_kfd_does_not_list(tmp_path: Path) -> None:
    tree = build_mi210(tmp_path, count=2)
    tree.gpus[1].write("device", "0x1234")
    tree.remove_kfd()
    assert [device.architecture for device in open_amd(tree).devices] == ["gfx90a", ""]


def test_apus_figures_are_those_of_its_cpu_cores_too(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "x").mkdir()
    apu = open_amd(build_mi300a(tmp_path / "a")).devices[0]
    card = open_amd(build_mi300x(tmp_path / "x")).devices[0]
    assert (apu.energy_of, card.energy_of) == ("module", "device")


def test_part_of_a_node_of_whole_cards_needs_no_note(tmp_path: Path) -> None:
    assert open_amd(build_mi210(tmp_path), ROCR_VISIBLE_DEVICES="1").notes == ()


def test_no_gpu_of_the_job(mi210: AmdTree) -> None:
    with pytest.raises(DeviceError, match="none of the 1 AMD GPUs"):
        open_amd(mi210, ROCR_VISIBLE_DEVICES="")


def test_gpus_that_the_device_cgroup_hides_are_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = build_mi210(tmp_path, count=3)
    hidden = {str(CPU_NODES), str(CPU_NODES + 2)}
    honest = Path.read_text

    def read_text(path: Path, *args: str, **options: str) -> str:
        if path.name == "properties" and path.parent.name in hidden:
            raise PermissionError(errno.EPERM, "refused")
        return honest(path, *args, **options)

    monkeypatch.setattr(Path, "read_text", read_text)
    (device,) = open_amd(tree, ROCR_VISIBLE_DEVICES="0").devices
    assert (device.index, device.pci_bus_id) == (0, tree.gpus[1].address)
    hidden.add(str(CPU_NODES + 1))
    with pytest.raises(DeviceError, match=r"none of the 3 AMD GPUs here .* cgroup"):
        open_amd(tree)


def test_partitions_of_one_card_count_once(tmp_path: Path) -> None:
    tree = build_mi210(tmp_path, count=2)
    node = tree.gpus[1].node
    assert node is not None
    location = (1 << 28) + (0x11 << 8)
    (node / "properties").write_text(f"simd_count 4\nlocation_id {location}\nunique_id 77\n")
    tree.add_process(50, {0: GIB, 1: 2 * GIB})
    source = open_amd(tree)
    assert len(source.devices) == 1
    assert "partitioned" in source.notes[0]
    values = tree.gpus[0].of(source.read(frozenset({50})))
    assert values["gpu_job_processes"] == 1
    assert values["gpu_job_memory_bytes"] == 3 * GIB


def test_pci_address_with_all_its_parts(mi210: AmdTree) -> None:
    node = mi210.gpus[0].node
    assert node is not None
    location = (0x41 << 8) | (0x1F << 3) | 5
    (node / "properties").write_text(f"simd_count 440\nlocation_id {location}\ndomain 18\n")
    assert open_amd(mi210).devices[0].pci_bus_id == "0012:41:1f.5"
