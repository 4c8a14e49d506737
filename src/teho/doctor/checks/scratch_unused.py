"""Does the job use the node's own disk?"""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, not_applicable, remark, unknown
from teho.doctor.snapshot import DataSample, Folder, Snapshot
from teho.units import format_bytes

__all__ = ["ABOUT", "check"]

ABOUT = "use of the node's own disk"


def check(snapshot: Snapshot) -> Outcome:
    """Find temporary files or named data that are not on this disk."""
    scratch = snapshot.folders.get("scratch")
    if scratch is None:
        return not_applicable("no environment variable names a local disk for this job")
    if not isinstance(scratch, Folder):
        return unknown(f"the job's own disk cannot be checked: {scratch.detail}")
    if scratch.is_network or scratch.is_memory:
        return not_applicable(f"{scratch.path} is not a disk of the node: {scratch.file_system}")
    data = snapshot.data.folder if isinstance(snapshot.data, DataSample) else None
    folders = [one for one in (snapshot.folders.get("temporary"), data) if isinstance(one, Folder)]
    for one in folders:
        if one.mounted_on == scratch.mounted_on:
            return fine(f"{one.path} is on the job's own disk")
    remote = [one for one in folders if one.is_network or one.is_memory]
    if not remote:
        return fine("temporary files and data are on other disks of the node")
    return remark(
        f"The job has {format_bytes(scratch.free_bytes)} free on its own disk in {scratch.path}, "
        f"but the folder {remote[0].path} is on another file system ({remote[0].file_system}).",
        f"Run `export TMPDIR={scratch.path}`, and copy the data there when the job starts: "
        "`teho submit --stage FILE`.",
        ("free on the job's disk", scratch.free_bytes, "bytes"),
        ("folders on other file systems", ", ".join(one.path for one in remote), ""),
    )
