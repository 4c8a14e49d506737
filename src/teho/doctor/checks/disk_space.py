"""Room to write where a job writes."""

from __future__ import annotations

from teho.doctor.outcome import Outcome, fine, symptom, unknown
from teho.doctor.snapshot import Folder, Snapshot
from teho.explain.wording import joined
from teho.model.doctor import Symptom
from teho.model.finding import Severity, Threshold
from teho.units import GIB, format_bytes

__all__ = ["ABOUT", "DECISIVE", "ID", "check"]

ID = "disk-space"
ABOUT = "room and rights where a job writes: here, home, scratch, TMPDIR"
DECISIVE = True

_PLACES = ("here", "home", "scratch", "temporary")
_NONE = Threshold(16, "MiB", "Teho's own choice: not even a log and a small checkpoint fit")
_LITTLE = Threshold(1, "GiB", "Teho's own choice: about the checkpoint of a model of 10^8 weights")
_FILES = Threshold(100, "files", "Teho's own choice: a cache of compiled kernels has hundreds")


def check(snapshot: Snapshot) -> Outcome:
    """Look at the free space and free files of each place, and whether it can be written to."""
    found: list[Symptom] = []
    seen: dict[str, Folder] = {}
    gone: list[str] = []
    for place in _PLACES:
        folder = snapshot.folders.get(place)
        if isinstance(folder, Folder):
            seen.setdefault(folder.mounted_on, folder)
            found += _judged(place, folder, snapshot, known=seen[folder.mounted_on] is not folder)
        elif folder is not None:
            gone.append(f"{place}: {folder.detail}")
    if found:
        return found
    if gone:
        return unknown("; ".join(gone))
    parts = [f"{format_bytes(one.free_bytes)} on {one.mounted_on}" for one in seen.values()]
    return fine(joined(parts)) if parts else unknown("no folder was looked at")


def _judged(place: str, folder: Folder, snapshot: Snapshot, *, known: bool) -> list[Symptom]:
    name = {"here": "The current folder", "home": "The home folder"}.get(place, folder.path)
    needed = place in {"here", "temporary"} and snapshot.in_job
    if not folder.is_writable:
        return [
            symptom(
                ID,
                Severity.CRITICAL if place != "home" else Severity.WARNING,
                f"{name} cannot be written to.",
                "Submit from a folder of your own on the site's file system for jobs."
                if place == "here"
                else f"Look at its rights: `ls -ld {folder.path}`.",
                ("mounted on", folder.mounted_on, ""),
            )
        ]
    if known:
        return []  # the same file system, of which something was said already
    evidence = (
        ("mounted on", folder.mounted_on, ""),
        ("free", folder.free_bytes, "bytes"),
        ("in all", folder.total_bytes, "bytes"),
    )
    advice = f"Make room, or write elsewhere: `du -xh --max-depth=1 {folder.path} | sort -h`."
    if folder.total_files and folder.free_files < _FILES.value:
        return [
            symptom(
                ID,
                Severity.CRITICAL,
                f"{name} is full: no more than {folder.free_files} new files fit.",
                "Delete many small files, or pack them: "
                f"`du --inodes -x --max-depth=1 {folder.path} | sort -n`.",
                ("mounted on", folder.mounted_on, ""),
                ("files that fit", folder.free_files, ""),
                thresholds=(_FILES,),
                dooms=needed,
            )
        ]
    if folder.free_bytes < _NONE.value * 1024**2:
        said, severity, limit = "is full", Severity.CRITICAL, _NONE
    elif folder.free_bytes < _LITTLE.value * GIB:
        said, severity, limit = "is nearly full", Severity.WARNING, _LITTLE
    else:
        return []
    return [
        symptom(
            ID,
            severity,
            f"{name} {said}: {format_bytes(folder.free_bytes)} are free.",
            advice,
            *evidence,
            thresholds=(limit,),
            dooms=needed and limit is _NONE,
        )
    ]
