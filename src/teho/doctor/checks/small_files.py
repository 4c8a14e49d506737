"""Are the data many small files on a network file system?"""

from __future__ import annotations

from shlex import quote
from statistics import median

from teho.doctor.outcome import Outcome, fine, not_applicable, unknown, warning
from teho.doctor.snapshot import Snapshot
from teho.explain.shared_thresholds import SHARED, SMALL_FILES
from teho.model.missing import Missing
from teho.units import format_bytes

__all__ = ["ABOUT", "check"]

ABOUT = "a sample of the files in the folder of --data"

_MANY = SHARED[SMALL_FILES]["files_min"]
_SMALL = SHARED[SMALL_FILES]["size_kib"]


def check(snapshot: Snapshot) -> Outcome:
    """Judge the median size of some files, drawn at random. Not all files are read."""
    if snapshot.data is None:
        return not_applicable("to check the files of a folder, add `--data DIR`")
    if isinstance(snapshot.data, Missing):
        return unknown(f"the data cannot be checked: {snapshot.data.detail}")
    data, count = snapshot.data, snapshot.data.listed
    if not data.sizes_bytes:
        return unknown(f"{data.folder.path} has no file")
    middle = median(data.sizes_bytes)
    more = "" if data.is_whole else " or more"
    shown = f"{count:,} files{more}, with a median size of {format_bytes(middle)}"
    if not data.folder.is_network:
        return fine(f"{shown}, on a file system of this node")
    if count < _MANY.value or middle >= _SMALL.value * 1024:
        return fine(shown)
    folder = quote(data.folder.path)
    return warning(
        f"{data.folder.path} has {shown}, on {data.folder.file_system}. For each file, a program "
        f"waits for a server that all users share.",
        f"Pack the files once into a few large ones: `teho pack {folder} packed`. Your "
        "program reads them with `packed` of `teho.feed`. Or leave the program as it is: pack the "
        f"files with `tar -cf data.tar -C {folder} .`, and unpack the archive on the "
        "node's disk when the job starts: `teho submit --stage data.tar`.",
        ("files seen", count, ""),
        ("median size", middle, "bytes"),
        ("sizes read", len(data.sizes_bytes), ""),
        thresholds=(_MANY, _SMALL),
    )
