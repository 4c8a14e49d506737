"""Bytes that the node's disks read and wrote."""

from __future__ import annotations

from pathlib import Path

from teho.devices.host.part import Part, Traffic
from teho.devices.procfile import names_in
from teho.model.device import Reading
from teho.model.missing import Missing, Reason
from teho.patterns import lazy_pattern

__all__ = ["Disks"]

# The kernel counts sectors of 512 bytes for all disks.
_SECTOR_BYTES = 512
# Files and memory as disks, and disks that consist of other disks.
_NOT_A_DISK = lazy_pattern(r"(loop|ram|zram|dm-|md|sr|fd)\d.*")
_NVME_PATH = lazy_pattern(r"(nvme\d+)c\d+(n\d+)")


class Disks(Part):
    """The whole disks of /sys/block at the start (kernel, Documentation/block/stat.rst)."""

    metrics: tuple[str, ...] = ("disk_read_bytes", "disk_write_bytes")

    def __init__(self, root: Path) -> None:
        super().__init__()
        self._traffic = Traffic(self.metrics)
        self._files = {
            name: self._open(root / "sys/block" / name / "stat") for name in _disks(root)
        }

    def read(self) -> dict[str, Reading]:
        """Return `disk_read_bytes` and `disk_write_bytes`."""
        counters = {}
        missing = Missing(Reason.ABSENT, "the node has no disk")
        for name, file in self._files.items():
            data = file.read()
            if isinstance(data, Missing):
                missing = data
                continue
            words = data.split(None, 7)
            counters[name] = (int(words[2]) * _SECTOR_BYTES, int(words[6]) * _SECTOR_BYTES)
        return self._traffic.add(counters) if counters else self._all(missing)


def _disks(root: Path) -> list[str]:
    """Return the names of the disks, each piece of hardware once."""
    block = root / "sys/block"
    names = [
        name
        for name in sorted(names_in(block))
        if not _NOT_A_DISK.fullmatch(name)
        and (block / name / "stat").exists()
        and not names_in(block / name / "slaves")
    ]
    # A multipath NVMe shows the disk and each path to it. Only the paths count in all kernels.
    heads = {"".join(match.groups()) for name in names if (match := _NVME_PATH.fullmatch(name))}
    return [name for name in names if name not in heads]
