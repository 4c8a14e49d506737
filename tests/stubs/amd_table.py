"""The firmware of an AMD GPU: what it counts, and the table `gpu_metrics` that it fills.

The tests' own declaration of the kernel's structs (kgd_pp_interface.h), laid out by `ctypes` as C
does, and a GPU whose true energy and activity are known:

    firmware = Firmware((1, 3))
    firmware.run(10, power_w=300, busy=80)
    assert firmware.energy_j == 3000
    path.write_bytes(firmware.table())
"""

from __future__ import annotations

import ctypes

TICK_J = 2**-16
FIRMWARE_STEP_S = 0.001
_U8, _U16, _U32, _U64 = ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64
_Fields = list[tuple[str, type]]


def _each(kind: type, names: str) -> _Fields:
    return [(name, kind) for name in names.split()]


_HEADER: _Fields = [
    ("structure_size", _U16),
    ("format_revision", _U8),
    ("content_revision", _U8),
]
_BOARD_TEMPERATURES = _each(
    _U16,
    "temperature_edge temperature_hotspot temperature_mem temperature_vrgfx temperature_vrsoc "
    "temperature_vrmem",
)
_BOARD_ACTIVITY = _each(
    _U16, "average_gfx_activity average_umc_activity average_mm_activity average_socket_power"
)
_BOARD_CLOCKS = _each(
    _U16,
    "average_gfxclk_frequency average_socclk_frequency average_uclk_frequency "
    "average_vclk0_frequency average_dclk0_frequency average_vclk1_frequency "
    "average_dclk1_frequency current_gfxclk current_socclk current_uclk current_vclk0 "
    "current_dclk0 current_vclk1 current_dclk1",
)
_V1_0 = [
    *_HEADER,
    ("system_clock_counter", _U64),
    *_BOARD_TEMPERATURES,
    *_BOARD_ACTIVITY,
    ("energy_accumulator", _U32),
    *_BOARD_CLOCKS,
    ("throttle_status", _U32),
    ("current_fan_speed", _U16),
    *_each(_U8, "pcie_link_width pcie_link_speed"),
]
_V1_1 = [
    *_HEADER,
    *_BOARD_TEMPERATURES,
    *_BOARD_ACTIVITY,
    *_each(_U64, "energy_accumulator system_clock_counter"),
    *_BOARD_CLOCKS,
    ("throttle_status", _U32),
    *_each(_U16, "current_fan_speed pcie_link_width pcie_link_speed padding"),
    *_each(_U32, "gfx_activity_acc mem_activity_acc"),
    ("temperature_hbm", _U16 * 4),
]
_V1_2 = [*_V1_1, ("firmware_timestamp", _U64)]
_V1_3 = [
    *_V1_2,
    *_each(_U16, "voltage_soc voltage_gfx voltage_mem padding1"),
    ("indep_throttle_status", _U64),
]
_SOCKET = [
    *_HEADER,
    *_each(
        _U16,
        "temperature_hotspot temperature_mem temperature_vrsoc curr_socket_power "
        "average_gfx_activity average_umc_activity",
    ),
]
_ENERGY = _each(_U64, "energy_accumulator system_clock_counter")
_LINK_STATE = _each(_U16, "pcie_link_width pcie_link_speed xgmi_link_width xgmi_link_speed")
_SUMS = _each(_U32, "gfx_activity_acc mem_activity_acc")
_PCIE = _each(
    _U64,
    "pcie_bandwidth_acc pcie_bandwidth_inst pcie_l0_to_recov_count_acc pcie_replay_count_acc "
    "pcie_replay_rover_count_acc",
)
_NAKS = _each(_U32, "pcie_nak_sent_count_acc pcie_nak_rcvd_count_acc")
_XGMI: _Fields = [("xgmi_read_data_acc", _U64 * 8), ("xgmi_write_data_acc", _U64 * 8)]
_SOCKET_CLOCKS: _Fields = [
    ("current_gfxclk", _U16 * 8),
    ("current_socclk", _U16 * 4),
    ("current_vclk0", _U16 * 4),
    ("current_dclk0", _U16 * 4),
    ("current_uclk", _U16),
]
_RESIDENCIES = _each(
    _U32,
    "accumulation_counter prochot_residency_acc ppt_residency_acc socket_thm_residency_acc "
    "vr_thm_residency_acc hbm_thm_residency_acc",
)
_STATUS = _each(_U32, "throttle_status gfxclk_lock_status")
_V1_4 = [
    *_SOCKET,
    ("vcn_activity", _U16 * 4),
    *_ENERGY,
    *_STATUS,
    *_LINK_STATE,
    *_SUMS,
    *_PCIE,
    *_XGMI,
    ("firmware_timestamp", _U64),
    *_SOCKET_CLOCKS,
    ("padding", _U16),
]
_V1_5 = [
    *_SOCKET,
    ("vcn_activity", _U16 * 4),
    ("jpeg_activity", _U16 * 32),
    *_ENERGY,
    *_STATUS,
    *_LINK_STATE,
    *_SUMS,
    *_PCIE,
    *_NAKS,
    *_XGMI,
    ("firmware_timestamp", _U64),
    *_SOCKET_CLOCKS,
    ("padding", _U16),
]
V1_6_OF_OLD = [
    *_SOCKET,
    ("vcn_activity", _U16 * 4),
    ("jpeg_activity", _U16 * 32),
    *_ENERGY,
    *_RESIDENCIES,
    *_STATUS,
    *_LINK_STATE,
    *_SUMS,
    *_PCIE,
    *_NAKS,
    *_XGMI,
    ("firmware_timestamp", _U64),
    *_SOCKET_CLOCKS,
    ("padding", _U16),
]
"""What v1.6 was for a short time."""


def _partitions(jpegs: int, sums: int) -> type:
    """Return 8 partitions, each with so many engines and sums over its 8 dies."""

    class Partition(ctypes.Structure):
        _fields_ = (
            ("gfx_busy_inst", _U32 * 8),
            ("jpeg_busy", _U16 * jpegs),
            ("vcn_busy", _U16 * 4),
            ("sums", _U64 * 8 * sums),
        )

    return Partition * 8


_TAIL: _Fields = [("firmware_timestamp", _U64), *_SOCKET_CLOCKS, ("num_partition", _U16)]
_COUNTED = [
    *_ENERGY,
    *_RESIDENCIES,
    ("gfxclk_lock_status", _U32),
    *_LINK_STATE,
    *_SUMS,
    *_PCIE,
    *_NAKS,
    *_XGMI,
]
_LINKED: _Fields = [("xgmi_link_status", _U16 * 8), ("padding", _U16)]
_RECOVERY: _Fields = [("pcie_lc_perf_other_end_recovery", _U32)]
_BANDWIDTH: _Fields = [("mem_max_bandwidth", _U64)]
_V1_6 = [*_SOCKET, *_COUNTED, *_TAIL, ("xcp_stats", _partitions(32, 1)), *_RECOVERY]
_V1_7 = [
    *(_SOCKET + _BANDWIDTH + _COUNTED + _LINKED + _TAIL),
    ("xcp_stats", _partitions(32, 2)),
    *_RECOVERY,
]
_V1_8 = [
    *(_SOCKET + _BANDWIDTH + _COUNTED + _LINKED + _TAIL),
    ("xcp_stats", _partitions(40, 5)),
    *_RECOVERY,
]

FIELDS: dict[tuple[int, int], _Fields] = {
    (1, 0): _V1_0,
    (1, 1): _V1_1,
    (1, 2): _V1_2,
    (1, 3): _V1_3,
    (1, 4): _V1_4,
    (1, 5): _V1_5,
    (1, 6): _V1_6,
    (1, 7): _V1_7,
    (1, 8): _V1_8,
}


def struct_of(revision: tuple[int, int], fields: _Fields | None = None) -> ctypes.Structure:
    """Return a table of one revision in which the driver has filled in nothing but the header."""

    class Table(ctypes.Structure):
        _fields_ = tuple(fields or FIELDS[revision])

    size = ctypes.sizeof(Table)
    table = Table.from_buffer(bytearray(b"\xff" * size))
    table.structure_size = size
    table.format_revision, table.content_revision = revision
    return table


class Firmware:
    """What one GPU counts; all public numbers are the truth that a reader should find."""

    def __init__(
        self,
        revision: tuple[int, int],
        *,
        energy_bits: int = 64,
        reports_energy: bool = True,
        activity_started: int = 0,
    ) -> None:
        self.revision = revision
        self.energy_j = 1_000_000.0
        self.elapsed_s = 5000.0
        self.power_w = 0.0
        self.busy = 0
        self.memory = 0
        self.causes = 0
        self.reports_energy = reports_energy
        self.still = False
        self._energy_bits = energy_bits
        self._busy_sum = self._memory_sum = float(activity_started)
        self._steps = float(activity_started)
        self._hot_steps = self._capped_steps = 0.0

    def run(
        self,
        elapsed_s: float,
        *,
        power_w: float = 0.0,
        busy: float = 0,
        memory: float = 0,
        hot: float = 0,
        capped: float = 0,
    ) -> None:
        """Let time pass, in which all of this was so on average; shares are percents."""
        self.elapsed_s += elapsed_s
        self.power_w = power_w
        if not self.still:
            self.energy_j += elapsed_s * power_w
        steps = elapsed_s / FIRMWARE_STEP_S
        self._steps += steps
        self._busy_sum += steps * busy
        self._memory_sum += steps * memory
        self._hot_steps += steps * hot / 100
        self._capped_steps += steps * capped / 100

    def reset(self) -> None:
        """Begin anew, as after a reset of the GPU."""
        self.energy_j = 0.0
        self._busy_sum = self._memory_sum = self._steps = 0.0

    def table(self) -> bytes:
        """Return what `gpu_metrics` holds now."""
        table = struct_of(self.revision)
        ticks = round(self.energy_j / TICK_J) if self.reports_energy else 0
        values = {
            "energy_accumulator": ticks % 2**self._energy_bits,
            "system_clock_counter": round(self.elapsed_s * 1e9),
            "average_gfx_activity": self.busy,
            "average_umc_activity": self.memory,
            "average_socket_power": round(self.power_w),
            "curr_socket_power": round(self.power_w),
            "throttle_status": self.causes & 0xFFFF_FFFF,
            "indep_throttle_status": self.causes,
        }
        if self._energy_bits == 64:  # the MI100 has none of these
            values |= {
                "gfx_activity_acc": round(self._busy_sum) % 2**32,
                "mem_activity_acc": round(self._memory_sum) % 2**32,
                "firmware_timestamp": round(self.elapsed_s * 1e8),
                "accumulation_counter": round(self._steps) % 2**32,
                "prochot_residency_acc": 0,
                "ppt_residency_acc": round(self._capped_steps),
                "socket_thm_residency_acc": round(self._hot_steps),
                "vr_thm_residency_acc": 0,
                "hbm_thm_residency_acc": round(self._hot_steps / 2),
            }
        names = {name for name, _ in FIELDS[self.revision]}
        for name in names & values.keys():
            setattr(table, name, values[name])
        return bytes(table)
