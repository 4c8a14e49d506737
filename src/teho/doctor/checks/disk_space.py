"""Is there space to write in the folders that a job uses?"""

from __future__ import annotations

from teho.doctor.outcome import Outcome, critical, fine, unknown, warning
from teho.doctor.snapshot import Folder, Snapshot
from teho.explain.wording import joined
from teho.model.doctor import Symptom
from teho.model.finding import Threshold
from teho.units import GIB, MIB, format_bytes

__all__ = ["ABOUT", "DECISIVE", "check"]

ABOUT = "space and permissions of the folders of a job: current folder, home, scratch, TMPDIR"
DECISIVE = True

_PLACES = ("here", "home", "scratch", "temporary")
_NAMES = {"here": "current folder", "home": "home folder"}
_NONE = Threshold(16, "MiB", "Teho's own choice: a log and a small checkpoint need at least 16 MiB")
_LITTLE = Threshold(
    1, "GiB", "Teho's own choice: the checkpoint of a model with 10^8 weights needs about 1 GiB"
)
_FILES = Threshold(
    100, "files", "Teho's own choice: a cache of compiled kernels has hundreds of files"
)


def check(snapshot: Snapshot) -> Outcome:
    """Judge free space, free files and write permission of each folder."""
    found: list[Symptom] = []
    seen: dict[str, Folder] = {}
    missing: list[str] = []
    for place in _PLACES:
        folder = snapshot.folders.get(place)
        if isinstance(folder, Folder):
            is_first = seen.setdefault(folder.mounted_on, folder) is folder
            one = _problem(place, folder, snapshot, is_first=is_first)
            found += [one] if one else []
        elif folder is not None:
            missing.append(folder.detail)
    if found:
        return found
    if missing:
        return unknown("; ".join(missing))
    parts = [f"{format_bytes(one.free_bytes)} on {one.mounted_on}" for one in seen.values()]
    return fine(joined(parts)) if parts else unknown("no folder was checked")


def _problem(place: str, folder: Folder, snapshot: Snapshot, *, is_first: bool) -> Symptom | None:
    """Return the first problem of a folder; its space only if it is the first on its disk."""
    name = f"The {_NAMES[place]}" if place in _NAMES else folder.path
    is_needed = place in {"here", "temporary"} and snapshot.in_job
    mounted = ("mounted on", folder.mounted_on, "")
    if not folder.is_writable:
        return (critical if place != "home" else warning)(
            f"{name} cannot be written to.",
            "Submit from your own folder on the cluster's file system for jobs."
            if place == "here"
            else f"Check its permissions: `ls -ld {folder.path}`.",
            mounted,
        )
    if is_first and folder.total_files and folder.free_files < _FILES.value:
        return critical(
            f"{name} is almost full: it has room for only {folder.free_files} new files.",
            "Delete or pack small files: "
            f"`du --inodes -x --max-depth=1 {folder.path} | sort -n` lists the folders with the "
            "most files.",
            mounted,
            ("new files that fit", folder.free_files, ""),
            thresholds=(_FILES,),
            is_fatal=is_needed,
        )
    if not is_first or folder.free_bytes >= _LITTLE.value * GIB:
        return None
    is_full = folder.free_bytes < _NONE.value * MIB
    return (critical if is_full else warning)(
        f"{name} is {'full' if is_full else 'nearly full'}: only "
        f"{format_bytes(folder.free_bytes)} are free.",
        f"Delete files, or write to another disk: `du -xh --max-depth=1 {folder.path} | sort -h` "
        "lists the largest folders.",
        mounted,
        ("free", folder.free_bytes, "bytes"),
        ("size", folder.total_bytes, "bytes"),
        thresholds=(_NONE if is_full else _LITTLE,),
        is_fatal=is_needed and is_full,
    )
