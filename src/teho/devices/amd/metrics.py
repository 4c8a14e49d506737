"""The binary table `gpu_metrics`, in which amdgpu reports energy, activity and throttling.

Layouts and units: `struct gpu_metrics_v1_*` in the kernel's kgd_pp_interface.h, aligned by the C
compiler. aldebaran_ppt.c (MI200), arcturus_ppt.c (MI100) and smu_v13_0_6_ppt.c (MI300) fill the
fields. If all bits of a field are set, the driver left it out (smu_cmn.c).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

from teho.devices.amd.files import why_missing
from teho.devices.procfile import KeptFile
from teho.model.missing import Missing, Reason

__all__ = ["MetricsFile", "Table", "decode"]

Table = Mapping[str, int]
"""The fields of one reading, by the names in `_LAYOUTS`, without those that the driver left out."""

_HEADER = struct.Struct("<HBB")

# One word per field, in C's order. `name:type` is kept, a type without a name is skipped. H, I and
# Q are unsigned numbers of 16, 32 and 64 bits. Only v1.6 lists the fields after the last name.
_BOARD = (  # v1.1: 6 temperatures, 3 activities, power; 14 clocks; fan, link; the sums
    "6H gfx:H memory:H 2H energy:Q clock_ns:Q 14H I 4H gfx_sum:I memory_sum:I 4H"
)
_LINKS = "5Q 2I 16Q"  # PCIe traffic and errors, XGMI traffic
_RESIDENCIES = "steps:I prochot:I power:I socket:I regulator:I hbm:I"
_SOCKET = f"energy:Q clock_ns:Q {_RESIDENCIES} I 4H gfx_sum:I memory_sum:I {_LINKS}"
_LAYOUTS = {
    (1, 0): "clock_ns:Q 6H gfx:H memory:H 2H energy:I",
    (1, 1): _BOARD,
    (1, 2): f"{_BOARD} time:Q",
    (1, 3): f"{_BOARD} time:Q 4H causes:Q",
    (1, 4): "4H gfx:H memory:H 4H energy:Q clock_ns:Q throttlers:I I 4H gfx_sum:I memory_sum:I "
    "5Q 16Q time:Q",
    (1, 5): "4H gfx:H memory:H 36H energy:Q clock_ns:Q throttlers:I I 4H gfx_sum:I memory_sum:I "
    f"{_LINKS} time:Q",
    # An early v1.6 was another table, without the 8 partitions at the end.
    (1, 6): f"4H gfx:H memory:H {_SOCKET} time:Q 22H 1344x",
    (1, 7): f"4H gfx:H memory:H Q {_SOCKET} 9H time:Q",
    (1, 8): f"4H gfx:H memory:H Q {_SOCKET} 9H time:Q",
}


class _Layout:
    """Reads the named fields of one revision's table."""

    def __init__(self, fields: str) -> None:
        before, packed, names, sizes, end = "HBB", "<4x", [], [], _HEADER.size
        for field in fields.split():
            name, _, kind = field.rpartition(":")
            # Without a prefix, `struct` aligns fields like the C compiler.
            start = struct.calcsize(f"{before}{kind}") - struct.calcsize(f"={kind}")
            before += kind
            if name:
                packed += f"{start - end}x{kind}"
                end = start + struct.calcsize(f"={kind}")
                names.append(name)
                sizes.append(end - start)
        self.bytes = struct.calcsize(before)
        self._struct = struct.Struct(packed)
        self._names = names
        self._unset = [(1 << 8 * size) - 1 for size in sizes]

    def read(self, data: bytes) -> Table:
        values = self._struct.unpack_from(data)
        return {
            name: value
            for name, value, unset in zip(self._names, values, self._unset, strict=True)
            if value != unset
        }


_READY = {revision: _Layout(fields) for revision, fields in _LAYOUTS.items()}


def decode(data: bytes) -> Table | Missing:
    """Return the fields of a table, or why they are not known."""
    if len(data) < _HEADER.size:
        return Missing(
            Reason.FAILED, f"gpu_metrics has only {len(data)} bytes, less than its header needs"
        )
    size, major, minor = _HEADER.unpack_from(data)
    layout = _READY.get((major, minor))
    if layout is None or size < layout.bytes:
        return Missing(
            Reason.UNSUPPORTED,
            f"gpu_metrics has revision v{major}.{minor} with {size} bytes, but Teho only knows "
            "the layouts v1.0 to v1.8",
        )
    if len(data) < layout.bytes:
        return Missing(
            Reason.FAILED,
            f"only {len(data)} bytes of gpu_metrics were read, but its layout v{major}.{minor} has "
            f"{layout.bytes} bytes",
        )
    return layout.read(data)


class MetricsFile(KeptFile):
    """The table of one GPU, in a file that stays open. The longest layout has 3872 bytes."""

    def read(self) -> Table | Missing:
        """Return the present table, or why it cannot be read."""
        try:
            return decode(self.page())
        except OSError as error:
            return why_missing(error, "gpu_metrics")
