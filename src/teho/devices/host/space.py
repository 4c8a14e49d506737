"""Space of the node's own file system with the job's temporary folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from teho.devices.host.part import Part
from teho.devices.procfile import missing_because, read_text, unescape
from teho.model.device import Reading
from teho.model.missing import Missing, Reason

__all__ = ["TemporarySpace"]

_LOCAL = frozenset(
    {"btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "ramfs", "tmpfs", "xfs", "zfs"}
)
"""File systems that answer without a server: a server that hangs would stop the recorder."""
_POINT, _TYPE_AFTER = 4, "-"


class TemporarySpace(Part):
    """The file system of `TMPDIR`, or of /tmp (statvfs(3)).

    Args:
        root: root of the file system.
        environment: the job's.
    """

    metrics: tuple[str, ...] = ("tmp_used_bytes", "tmp_free_bytes")

    def __init__(self, root: Path, environment: Mapping[str, str]) -> None:
        super().__init__()
        folder = environment.get("TMPDIR") or "/tmp"  # noqa: S108 - only its space is read
        self._path = root / folder.lstrip("/")
        kind = _kind_of(folder, read_text(root / "proc/self/mountinfo"))
        self._missing: Missing | None = None
        if kind not in _LOCAL:
            named = f"{folder} is on a file system of the type {kind}" if kind else f"{folder}"
            self._missing = Missing(
                Reason.UNSUPPORTED, f"{named}: Teho asks only the node's own file systems"
            )

    def read(self) -> dict[str, Reading]:
        """Return `tmp_used_bytes` and `tmp_free_bytes`; free is what an ordinary user can use."""
        if self._missing:
            return self._all(self._missing)
        try:
            seen = os.statvfs(self._path)
        except OSError as error:
            return self._all(missing_because(error, self._path))
        used = (seen.f_blocks - seen.f_bfree) * seen.f_frsize
        return dict(zip(self.metrics, (used, seen.f_bavail * seen.f_frsize), strict=True))


def _kind_of(folder: str, mountinfo: str) -> str:
    """Return the type of a folder's file system (proc(5), mountinfo); empty if not known."""
    found, longest = "", -1
    for line in mountinfo.splitlines():
        words = line.split()
        if _TYPE_AFTER not in words:
            continue
        point = unescape(words[_POINT])
        is_above = folder == point or folder.startswith(point.rstrip("/") + "/")
        # Of two mounts at one point, the later one covers the other.
        if is_above and len(point) >= longest:
            found, longest = words[words.index(_TYPE_AFTER) + 1], len(point)
    return found
