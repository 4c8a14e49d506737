"""A disk of the job's own that nothing is set to use."""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, moot, symptom, unknown
from teho.doctor.snapshot import Folder, Snapshot
from teho.model.finding import Severity
from teho.units import format_bytes

__all__ = ["ABOUT", "DECISIVE", "ID", "check"]

ID = "scratch-unused"
ABOUT = "the node's own disk, where the job has one"
DECISIVE = False


def check(snapshot: Snapshot) -> Outcome:
    """Look at whether temporary files, and the data that was named, lie there."""
    scratch = snapshot.folders.get("scratch")
    if scratch is None:
        return moot("no variable names a disk of the job's own")
    if not isinstance(scratch, Folder):
        return unknown(f"the job's own disk cannot be looked at: {scratch.detail}")
    if scratch.is_network or scratch.is_memory:
        return moot(f"{scratch.path} is not a disk of the node: {scratch.file_system}")
    temporary, data = snapshot.folders.get("temporary"), snapshot.data
    used = [
        one
        for one in (temporary, getattr(data, "folder", None))
        if isinstance(one, Folder) and one.mounted_on == scratch.mounted_on
    ]
    if used:
        return fine(f"{used[0].path} lies on it")
    remote = [
        one
        for one in (temporary, getattr(data, "folder", None))
        if isinstance(one, Folder) and (one.is_network or one.is_memory)
    ]
    if not remote:
        return fine("what is read and written is on other disks of the node")
    return [
        symptom(
            ID,
            Severity.REMARK,
            f"The job has {format_bytes(scratch.free_bytes)} of its own disk in {scratch.path}, "
            f"and {remote[0].path} lies on {remote[0].file_system}.",
            f"`export TMPDIR={scratch.path}`, and bring the data there at the job's start: "
            "`teho submit --stage FILE`.",
            ("free there", scratch.free_bytes, "bytes"),
            ("not used for", ", ".join(one.path for one in remote), ""),
        )
    ]
