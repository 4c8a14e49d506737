"""Folders that look like the sysfs of a node with AMD GPUs, and change while a test runs.

Values are written into the same file, as sysfs does, so that a reader which keeps its files
open sees them:

    tree = build_mi250x(tmp_path, busy=[90, 80, 0, 0, 0, 0, 0, 0])
    source = AmdSource({}, root=tree.root)
    tree.gpus[0].write("gpu_busy_percent", 50)
    tree.gpus[0].run(10, power_w=300)  # what its firmware counts
    tree.add_process(4711, {0: 2 * GIB})
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from stubs.amd_models import MI100, MI210, MI250X, MI300A, MI300X, Model
from stubs.amd_table import Firmware
from teho.devices.amd.source import AmdSource
from teho.model.device import Reading, Readings
from teho.model.missing import Missing, Reason

NOBODY: frozenset[int] = frozenset()
"""The program's processes, if it has none."""

CPU_NODES = 4
"""KFD counts the processors' NUMA nodes first."""

# The figures of a real node: KFD knows the 4 links within a card as 200 GB/s, and one or two of
# them, 50 or 100 GB/s, between cards; each die has one to a processor.
WITHIN_CARD_MBPS = 200_000
BETWEEN_CARDS_MBPS = (50_000, 100_000)
TO_CPU_MBPS = 50_000

_MI250X_BUSES = (0xC1, 0xC6, 0xC9, 0xCE, 0xD1, 0xD6, 0xD9, 0xDE)


@dataclass
class GpuTree:
    """One GPU's files."""

    address: str
    unique_id: int
    kfd_id: int
    folder: Path
    firmware: Firmware
    node: Path | None = None

    def run(self, elapsed_s: float, *, power_w: float = 0, **activity: float) -> None:
        """Let time pass for the firmware, and write what it then says; see `Firmware.run`."""
        self.firmware.run(elapsed_s, power_w=power_w, **activity)
        self.write_table()

    def write_table(self, table: bytes | None = None) -> None:
        """Set what `gpu_metrics` answers: what the firmware says, or something else."""
        content = self.firmware.table() if table is None else table
        (self.folder / "gpu_metrics").write_bytes(content)

    def write_errors(self, *, corrected: int, uncorrected: int) -> None:
        """Set how many errors of its memory the driver has counted."""
        (self.folder / "ras").mkdir(exist_ok=True)
        _write(self.folder / "ras/umc_err_count", f"ue: {uncorrected}\nce: {corrected}")

    def path(self, name: str) -> Path:
        """Find a file by its name alone, or by its name in the sensors' folder."""
        sensors = self.folder / "hwmon" / "hwmon3"
        is_sensor = name.startswith(("power1_", "freq", "temp"))
        return (sensors if is_sensor else self.folder) / name

    def write(self, name: str, value: float | str) -> None:
        """Set what the file answers, in the file's own unit."""
        _write(self.path(name), value)

    def remove(self, *names: str) -> None:
        for name in names:
            self.path(name).unlink()

    def of(self, readings: Readings) -> dict[str, Reading]:
        """Pick this GPU's part of what a source read."""
        return readings[f"GPU-{self.unique_id:016x}"]

    def vanish(self) -> None:
        """Take the GPU off the bus; files that are open answer nothing any more."""
        for path in self.folder.rglob("*"):
            if path.is_file():
                path.write_text("")
        shutil.rmtree(self.folder)


class RefusingKernel:
    """Lets files refuse by name, which a folder of plain files cannot, root's least of all."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.refused_open: dict[str, int] = {}
        self.refused_read: dict[str, int] = {}
        self.opened: list[str] = []
        self._open, self._pread = os.open, os.pread
        monkeypatch.setattr(os, "open", self._refusing_open)
        monkeypatch.setattr(os, "pread", self._refusing_pread)

    def _refusing_open(self, path: str, flags: int, *rest: int) -> int:
        name = Path(path).name
        self.opened.append(name)
        if name in self.refused_open:
            raise OSError(self.refused_open[name], "refused", path)
        return self._open(path, flags, *rest)

    def _refusing_pread(self, descriptor: int, size: int, offset: int) -> bytes:
        name = Path(f"/proc/self/fd/{descriptor}").readlink().name
        if name in self.refused_read:
            raise OSError(self.refused_read[name], "refused")
        return self._pread(descriptor, size, offset)


def open_amd(tree: AmdTree, **environment: str) -> AmdSource:
    return AmdSource(environment, root=tree.root)


def reason_of(value: Reading) -> Reason:
    """Return why a value is not there; fails where it is."""
    assert isinstance(value, Missing), value
    return value.reason


@dataclass
class AmdTree:
    """A node's `root`, and its GPUs in KFD's order."""

    root: Path
    gpus: list[GpuTree] = field(default_factory=list)

    @property
    def kfd(self) -> Path:
        return self.root / "sys/class/kfd/kfd"

    def add_process(self, pid: int, memory_bytes: Mapping[int, int | str]) -> None:
        """Let a process use GPUs, or change what it uses: KFD position -> bytes."""
        folder = self.kfd / "proc" / str(pid)
        folder.mkdir(exist_ok=True)
        _write(folder / "pasid", 32770)
        for position, size_bytes in memory_bytes.items():
            _write(folder / f"vram_{self.gpus[position].kfd_id}", size_bytes)

    def occupy(self, pid: int, compute_units: Mapping[int, int | str]) -> None:
        """Let a process have wavefronts in flight: KFD position -> compute units full of them."""
        for position, count in compute_units.items():
            stats = self.kfd / "proc" / str(pid) / f"stats_{self.gpus[position].kfd_id}"
            stats.mkdir(exist_ok=True)
            _write(stats / "cu_occupancy", count)

    def link(self, position: int, other: int, bandwidth_mbps: int) -> None:
        """Let KFD know of a link between two GPUs, each by its position."""
        for one, two in ((position, other), (other, position)):
            self._add_link(one, CPU_NODES + two, bandwidth_mbps)

    def _add_link(self, position: int, node: int, bandwidth_mbps: int) -> None:
        own = self.gpus[position].node
        assert own is not None
        folder = own / "io_links" / str(node)
        folder.mkdir(parents=True, exist_ok=True)
        properties = {
            "type": 11,
            "node_from": CPU_NODES + position,
            "node_to": node,
            "weight": 15,
            "max_bandwidth": bandwidth_mbps,
        }
        _write_properties(folder, properties)

    def link_dies(self, cards: Iterable[tuple[int, int]]) -> None:
        """Link the two dies of each card, all cards with each other, and all dies with a CPU."""
        ways = itertools.cycle(BETWEEN_CARDS_MBPS)
        for position, other in itertools.combinations(range(len(self.gpus)), 2):
            self.link(position, other, next(ways))
        for position, other in cards:
            self.link(position, other, WITHIN_CARD_MBPS)
        for position in range(len(self.gpus)):
            self._add_link(position, position % CPU_NODES, TO_CPU_MBPS)

    def end_process(self, pid: int) -> None:
        shutil.rmtree(self.kfd / "proc" / str(pid))

    def remove_kfd(self) -> None:
        shutil.rmtree(self.root / "sys/class/kfd")


def build_mi250x(
    root: Path,
    busy: Sequence[int] = (0,) * 8,
    *,
    cards: Sequence[tuple[int, int]] | None = None,
    buses: Sequence[int] = _MI250X_BUSES,
) -> AmdTree:
    """Build a node of 4 MI250X cards, which are 8 GPUs; one of each card reports no power.

    Args:
        root: an empty folder.
        busy: percent of each GPU; as many GPUs as there are numbers.
        cards: positions of the two dies of each card, the reporting one first; in pairs of
            neighbours by default.
        buses: PCI bus of each GPU, in KFD's order.
    """
    tree = build_amd(root, MI250X, buses[: len(busy)])
    for gpu, percent in zip(tree.gpus, busy, strict=True):
        gpu.write("gpu_busy_percent", percent)
    dies = [(first, first + 1) for first in range(0, len(busy) - 1, 2)] if cards is None else cards
    tree.link_dies(dies)
    for _, silent in dies:
        gpu = tree.gpus[silent]
        gpu.write("power1_average", 0)
        gpu.write("power1_cap", 0)
        gpu.firmware.reports_energy = False
        gpu.write_table()
    return tree


def build_mi210(root: Path, count: int = 2) -> AmdTree:
    """Build a node of whole cards."""
    return build_amd(root, MI210, [0x11 + 0x20 * position for position in range(count)])


def build_mi300a(root: Path, count: int = 4) -> AmdTree:
    """Build a node of APUs, which have no memory of their own."""
    return build_amd(root, MI300A, range(1, 1 + count))


def build_mi300x(root: Path, count: int = 8) -> AmdTree:
    """Build a node of whole cards whose firmware counts its own steps."""
    return build_amd(root, MI300X, [0x05 + 0x10 * position for position in range(count)])


def build_mi100(root: Path, count: int = 1) -> AmdTree:
    """Build a node of cards whose energy counter holds 32 bits."""
    return build_amd(root, MI100, [0x21 + 0x10 * position for position in range(count)])


def build_amd(
    root: Path,
    model: Model,
    buses: Sequence[int],
    *,
    cards: Sequence[int] | None = None,
) -> AmdTree:
    """Build a node.

    Args:
        root: an empty folder.
        model: of all GPUs.
        buses: PCI bus of each GPU, in KFD's order.
        cards: DRM card number of each GPU; they and the buses may stand in any order.
    """
    tree = AmdTree(root)
    drm = root / "sys/class/drm"
    drm.mkdir(parents=True)
    _write(drm / "version", "drm 1.1.0 20060810")
    (tree.kfd / "proc").mkdir(parents=True)
    for number in range(CPU_NODES):
        _add_node(tree, number, {"cpu_cores_count": 16, "simd_count": 0})
    for position, bus in enumerate(buses):
        gpu = _add_gpu(tree, model, position, bus)
        card = drm / f"card{cards[position] if cards else position}"
        card.mkdir()
        (card / "device").symlink_to(gpu.folder)
        (drm / f"{card.name}-DP-1").mkdir()  # a connector, which is no card
    return tree


def _add_gpu(tree: AmdTree, model: Model, position: int, bus: int) -> GpuTree:
    address = f"0000:{bus:02x}:00.0"
    gpu = GpuTree(
        address=address,
        unique_id=0xF0DE_0000_0000_0000 + 0x1357 * bus,  # needs all 64 bits, as real ones do
        kfd_id=20000 + 111 * bus,
        folder=tree.root / "sys/devices/pci0000:00" / address,
        firmware=Firmware(model.table, energy_bits=model.energy_bits),
    )
    _fill_folder(gpu, model, position)
    gpu.node = _add_node(
        tree,
        CPU_NODES + position,
        {
            "cpu_cores_count": 0,
            "simd_count": 4 * model.compute_units,
            "simd_per_cu": 4,
            "gfx_target_version": model.gfx_version,
            "vendor_id": 0x1002,
            "device_id": model.product,
            "location_id": bus << 8,
            "domain": 0,
            "drm_render_minor": 128 + position,
            "unique_id": gpu.unique_id,
        },
    )
    _write(gpu.node / "gpu_id", gpu.kfd_id)
    tree.gpus.append(gpu)
    return gpu


def _fill_folder(gpu: GpuTree, model: Model, position: int) -> None:
    (gpu.folder / "hwmon" / "hwmon3").mkdir(parents=True)
    gpu.write("vendor", "0x1002")
    gpu.write("device", f"0x{model.product:04x}")
    gpu.write("unique_id", f"{gpu.unique_id:016x}")
    gpu.write("numa_node", position // 2)
    gpu.write("gpu_busy_percent", 0)
    gpu.write("mem_busy_percent", 0)
    gpu.write_table()
    if model.product_name is not None:
        gpu.write("product_name", model.product_name)
    if model.vram_bytes is not None:
        gpu.write("mem_info_vram_total", model.vram_bytes)
        gpu.write("mem_info_vram_used", min(model.vram_bytes, 10_000_000))
    gpu.write(model.power_file, round(model.power_w * 1e6))
    gpu.write("power1_cap", round(model.power_cap_w * 1e6))
    gpu.write("power1_cap_default", round(model.power_cap_w * 1e6))
    gpu.write("freq1_input", 1_700_000_000)
    if model.memory_clock_mhz is not None:
        gpu.write("freq2_input", model.memory_clock_mhz * 1_000_000)
    # The edge is always temp1, the junction temp2, the memory temp3.
    for number, label in enumerate(("edge", "junction", "mem"), start=1):
        if label in model.temperatures_c:
            gpu.write(f"temp{number}_label", label)
            gpu.write(f"temp{number}_input", model.temperatures_c[label] * 1000)


def _add_node(tree: AmdTree, number: int, properties: Mapping[str, int]) -> Path:
    node = tree.kfd / "topology/nodes" / str(number)
    node.mkdir(parents=True)
    _write_properties(node, properties)
    return node


def _write_properties(folder: Path, properties: Mapping[str, int]) -> None:
    _write(folder / "properties", "\n".join(f"{key} {value}" for key, value in properties.items()))


def _write(path: Path, value: float | str) -> None:
    path.write_text(f"{value}\n")
