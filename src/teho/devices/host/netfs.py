"""Bytes that this node read from and wrote to network file systems: NFS and Lustre."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

from teho.devices.host.part import FilePart, Traffic
from teho.devices.procfile import ProcFile, read_text
from teho.model.device import Reading
from teho.model.missing import Missing, Reason

__all__ = ["NetworkFileSystems"]

_LUSTRE = ("proc/fs/lustre/llite", "sys/kernel/debug/lustre/llite")
# Network file systems for which the kernel does not show the traffic to users.
_UNCOUNTED = (b"beegfs", b"ceph", b"cifs", b"gpfs", b"pvfs2", b"smb3", b"wekafs")
_SERVER_READ, _SERVER_WRITE = 4, 5


class NetworkFileSystems(FilePart):
    """NFS from /proc/self/mountstats, Lustre from its clients' `stats` files."""

    metrics: tuple[str, ...] = ("netfs_read_bytes", "netfs_write_bytes")

    def __init__(self, root: Path) -> None:
        super().__init__(root / "proc/self/mountstats")
        self._traffic = Traffic(self.metrics)
        self._root = root
        self._superblocks: dict[bytes, str] = {}
        self._lustre: list[ProcFile] = []

    def values_in(self, data: bytes) -> dict[str, Reading]:
        """Return `netfs_read_bytes` and `netfs_write_bytes`.

        NFS: traffic with the server (nfs-utils, mountstats(8)), without page cache hits. If Lustre
        is mounted and its figures cannot be read, both are missing, because a sum without Lustre
        would mislead.
        """
        counters = self._nfs(data)
        if b" with fstype lustre" in data:
            lustre = self._read_lustre()
            if isinstance(lustre, Missing):
                return self._all(lustre)
            counters.update(lustre)
        return self._traffic.add(counters) if counters else self._all(_nothing_to_count(data))

    def _nfs(self, data: bytes) -> dict[str, tuple[int, int]]:
        """Return bytes (read, written) of each NFS file system.

        A file system that is mounted in several places (bind mounts, automounted homes of one
        export) has the same figures in each. It is counted once, by its device number.
        """
        counters = {}
        position = data.find(b"\n\tbytes:")
        while position >= 0:
            end = data.find(b"\n", position + 1)
            words = data[position : end if end >= 0 else None].split()[1:]
            header = data[data.rfind(b"device ", 0, position) : position].split(b"\n", 1)[0]
            mount_point = header.partition(b" mounted on ")[2].rpartition(b" with fstype ")[0]
            if len(words) > _SERVER_WRITE:
                counters[self._superblock(mount_point)] = (
                    int(words[_SERVER_READ]),
                    int(words[_SERVER_WRITE]),
                )
            position = data.find(b"\n\tbytes:", position + 1)
        return counters

    def _superblock(self, mount_point: bytes) -> str:
        if mount_point not in self._superblocks:
            # It was mounted after the last reading. Both tables escape blanks in the same way.
            lines = read_text(self._root / "proc/self/mountinfo").splitlines()
            fields = [line.split(" ", 5) for line in lines]
            known = {field[4].encode(): field[2] for field in fields if len(field) == 6}
            self._superblocks.update(known)
            self._superblocks.setdefault(mount_point, mount_point.decode(errors="replace"))
        return self._superblocks[mount_point]

    def _read_lustre(self) -> dict[str, tuple[int, int]] | Missing:
        if not self._lustre:
            directories = [self._root / name for name in _LUSTRE]
            found = chain.from_iterable(directory.glob("*/stats") for directory in directories)
            self._lustre = [self._open(path) for path in sorted(found)]
        if not self._lustre:
            return Missing(
                Reason.FORBIDDEN,
                "Lustre is mounted, but only root can read the values of Lustre in "
                "/sys/kernel/debug/lustre",
            )
        counters = {}
        for file in self._lustre:
            data = file.read()
            if isinstance(data, Missing):
                return data
            counters[str(file.path)] = (_lustre_sum(data, b"read"), _lustre_sum(data, b"write"))
        return counters


def _lustre_sum(data: bytes, what: bytes) -> int:
    """Return the sum of `read_bytes N samples [bytes] MIN MAX SUM`; 0 without this line."""
    for line in data.splitlines():
        words = line.split()
        if len(words) >= 7 and words[0] == what + b"_bytes":
            return int(words[6])
    return 0


def _nothing_to_count(data: bytes) -> Missing:
    for name in _UNCOUNTED:
        if b" with fstype " + name in data:
            return Missing(Reason.UNSUPPORTED, f"users cannot read the traffic of {name.decode()}")
    return Missing(Reason.ABSENT, "no NFS or Lustre is mounted")
