"""A path on one side of a copy, and its file system."""

from __future__ import annotations

import os
from typing import NamedTuple

import msgspec

from teho.doctor.snapshot import Folder
from teho.model.staged import FileSystem
from teho.stage.machine import Machine, shown

__all__ = ["Location", "location_of"]


class Location(NamedTuple):
    """A path on one side."""

    path: str
    """Absolute, without symbolic links."""
    kind: str
    """As in `Entry`; empty: it does not exist."""
    folder: Folder
    """With its file system; if it does not exist, the folder above it that exists."""
    device: str
    quotas: list[str]
    """Outputs of `quota` and `lfs quota`."""

    @property
    def system(self) -> FileSystem:
        """Its file system."""
        folder = self.folder
        return FileSystem(
            kind=folder.file_system,
            mounted_on=folder.mounted_on,
            free_bytes=folder.free_bytes,
            free_files=folder.free_files if folder.total_files else None,
        )


def location_of(machine: Machine, path: str, *, quotas: bool = False) -> Location:
    """Return what a path is; on this machine, the shell has replaced `~` already.

    Raises:
        TehoError: it cannot be read.
    """
    if not machine.host:
        path = os.path.abspath(path)  # noqa: PTH100 - the path may not be a text
    (found,) = machine.ask("describe", path, quotas=quotas)
    folder = found["folder"] | {"path": shown(found["folder"]["path"])}
    folder["mounted_on"] = shown(folder["mounted_on"])
    return Location(
        path=found["path"],
        kind=found["kind"],
        folder=msgspec.convert(folder, Folder),
        device=found["device"],
        quotas=found["quotas"],
    )
