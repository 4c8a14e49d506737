"""AMD's products, as far as their files differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

GIB = 1024**3


@dataclass(frozen=True)
class Model:
    """What the files of one product hold; None is a file that it does not have."""

    product: int
    product_name: str | None
    vram_bytes: int | None
    power_file: str
    power_w: float
    power_cap_w: float
    memory_clock_mhz: int | None
    temperatures_c: Mapping[str, int]
    gfx_version: int
    """As KFD writes it."""
    compute_units: int
    table: tuple[int, int] = (1, 3)
    """Revision of `gpu_metrics`."""
    energy_bits: int = 64


MI100 = Model(
    0x738C,
    None,
    32 * GIB,
    "power1_average",
    290,
    290,
    1200,
    {"edge": 38, "junction": 44, "mem": 50},
    gfx_version=90008,
    compute_units=120,
    energy_bits=32,
)
MI250X = Model(
    0x7408,
    "",
    64 * GIB,
    "power1_average",
    300,
    560,
    1600,
    {"edge": 40, "junction": 48, "mem": 52},
    gfx_version=90010,
    compute_units=110,
)
MI210 = Model(
    0x740F,
    "AMD Instinct MI210",
    64 * GIB,
    "power1_average",
    210,
    300,
    1600,
    {"edge": 38, "junction": 44, "mem": 50},
    gfx_version=90010,
    compute_units=104,
)
MI300A = Model(
    0x74A0,
    None,
    0,
    "power1_input",
    350,
    550,
    None,
    {"junction": 55, "mem": 60},
    gfx_version=90402,
    compute_units=228,
    table=(1, 5),
)
MI300X = Model(
    0x74A1,
    None,
    192 * GIB,
    "power1_input",
    700,
    750,
    1300,
    {"junction": 60, "mem": 62},
    gfx_version=90402,
    compute_units=304,
    table=(1, 8),
)
